"""Effects outside the sandboxes: a rollback compensates each at most once, and says what stays."""

import pytest
from effect_world import book, killed, ran, states
from fakes import Killed
from service_world import ServiceWorld, after, append

from cleveragents.domain.effects import EffectChoice, EffectReport
from cleveragents.domain.errors import EffectUncertainError, ToolError, ToolNotStartedError
from cleveragents.domain.plan import State


def test_a_rollback_compensates_newest_first_with_arguments_and_result() -> None:
    world = ServiceWorld(book("a"), append("x"), book("b"))
    world.run()
    world.tools.ran.clear()

    report = world.roll_back("start").effects

    assert world.tools.ran == [
        ("cancel", {"line": "b", "output": "seen"}),
        ("cancel", {"line": "a", "output": "seen"}),
    ]
    assert states(world) == ["compensated", "compensated"]
    assert report.compensated == ("step 3 (book): a seat", "step 1 (book): a seat")
    assert (report.lasting, report.failed, report.uncertain) == ((), (), ())


def test_only_what_the_rollback_undoes_is_compensated() -> None:
    world = ServiceWorld(book("a"), book("b"))
    world.run()
    world.roll_back("decision 2: book")
    assert states(world) == ["done", "compensated"]


def test_a_compensated_step_runs_again_without_asking() -> None:
    world = ServiceWorld(book())
    world.run()
    world.roll_back("start")
    world.run()
    assert ran(world) == ["book", "cancel", "book"]
    assert states(world) == ["compensated", "done"]


def test_a_compensation_that_fails_does_not_stop_the_rollback_and_is_told() -> None:
    world = ServiceWorld(append("x"), book())
    world.run()
    world.tools.broken.add("cancel")

    report = world.roll_back("start").effects

    assert world.files() == after()
    assert states(world) == ["uncertain"]
    assert report.uncertain == (
        "step 2 (book): a seat: its compensation cancel failed: cancel is broken",
    )
    with pytest.raises(EffectUncertainError):
        world.run()


def test_a_compensation_that_cannot_start_leaves_the_effect_as_it_was() -> None:
    world = ServiceWorld(book())
    world.run()
    world.faults.fail("run a tool", ToolNotStartedError("no such program", "install it"))

    report = world.roll_back("start").effects

    assert states(world) == ["done"]
    assert report.failed == ("step 1 (book): a seat: its compensation cancel: no such program",)


def test_an_effect_in_doubt_is_not_compensated_but_told() -> None:
    world = ServiceWorld(book())
    world.faults.fail("run a tool", ToolError("it timed out", "wait longer"))
    world.run()

    report = world.roll_back("start").effects

    assert ran(world) == []
    assert report.uncertain == ("step 1 (book): a seat: it timed out",)


def test_what_a_person_took_as_done_is_compensated_once() -> None:
    world = killed(ServiceWorld(book()), "ran a tool")
    world.run(EffectChoice.SKIP)
    assert states(world) == ["uncertain", "skipped"]

    report = world.roll_back("start").effects

    assert report == EffectReport(compensated=("step 1 (book): a seat",))
    assert states(world) == ["compensated", "compensated"]
    world.run()
    assert ran(world) == ["book", "cancel", "book"]


def test_undoing_a_rollback_does_not_do_effects_again_and_says_so() -> None:
    world = ServiceWorld(book())
    world.run()
    undo = world.roll_back("start").undo_group.group_id
    world.tools.ran.clear()

    report = world.roll_back(undo).effects

    assert world.tools.ran == []
    assert report == EffectReport(not_redone=("step 1 (book): a seat",))
    assert any("not done again" in sentence for sentence in report.sentences())
    assert world.run().state is State.COMPLETE
    assert world.tools.ran == []


def test_a_rollback_cut_off_in_a_compensation_does_not_repeat_it_unless_it_is_idempotent() -> None:
    for step, compensation, expected in (
        (book(), "cancel", "uncertain"),
        (append("a", tool="hire"), "return", "compensated"),
    ):
        world = ServiceWorld(step)
        world.run()
        world.faults.fail("ran a tool", Killed())
        with pytest.raises(Killed):
            world.roll_back("start")
        world.restart()
        assert states(world) == ["compensating"]

        world.recover()

        assert states(world) == [expected]
        assert ran(world).count(compensation) == (2 if expected == "compensated" else 1)
        assert world.plan.timeline == 1
        assert world.files() == after()


def test_every_kill_in_a_rollback_runs_each_compensation_at_most_once_or_leaves_doubt() -> None:
    for number in range(1, 200):
        world = ServiceWorld(book("a"), append("x"), book("b"))
        world.run()
        world.tools.ran.clear()
        if not world.kill_at(number, lambda world=world: world.roll_back("start")):
            break
        world.recover()
        runs = [arguments["line"] for name, arguments in world.tools.ran if name == "cancel"]
        assert len(runs) == len(set(runs))
        if world.plan.timeline == 0:
            assert states(world) == ["done", "done"]
        else:
            assert set(states(world)) <= {"compensated", "uncertain"}
            assert states(world).count("uncertain") <= 1
    else:
        pytest.fail("it does not end")
