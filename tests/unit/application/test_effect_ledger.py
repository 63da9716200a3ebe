"""Effects outside the sandboxes: on record before they begin, never repeated unasked."""

import pytest
from effect_world import book, killed, ran, states
from service_world import ServiceWorld, after, append, look

from cleveragents.domain.action import Step
from cleveragents.domain.effects import EffectChoice, EffectReport, EffectState, EffectVerdict
from cleveragents.domain.errors import (
    EffectDoneError,
    EffectUncertainError,
    InterruptedPlanError,
    SnapshotFailedError,
    ToolNotStartedError,
)
from cleveragents.domain.plan import State

PAGE = "step 1 (publish): the page is public"


def publish(line: str = "a") -> Step:
    return append(line, tool="publish")


# --- on record ----------------------------------------------------------------------------------


def test_an_effect_is_durable_before_its_tool_starts_and_done_with_the_step() -> None:
    world = ServiceWorld(publish())
    killed(world, "run a tool")

    (effect,) = world.effects
    assert effect.state is EffectState.STARTED
    assert (effect.tool, effect.step_index) == ("publish", 0)
    assert effect.effects == ("the page is public",)
    assert effect.arguments == {"line": "a", "resource": "code"}
    assert effect.decision_id == world.decisions[-1].decision_id
    assert world.calls == []

    world.run(EffectChoice.REPEAT)

    for tables in world.database.history:
        done = [e for e in tables.effects.values() if e.state is EffectState.DONE]
        assert len(done) == len(tables.tool_calls)
    assert states(world) == ["uncertain", "done"]
    assert world.effects[1].result.output == "appended"


def test_a_tool_that_stays_inside_leaves_nothing_in_the_ledger() -> None:
    world = ServiceWorld(append("a"), look())
    world.run()
    assert world.effects == []


def test_what_can_be_undone_is_an_effect_even_if_no_text_names_it() -> None:
    spec = ServiceWorld(book()).tools.find(ServiceWorld().action, "book")
    assert spec.outside_effects == ("a seat",)
    from msgspec.structs import replace

    assert replace(spec, side_effects=()).outside_effects == ("what cancel undoes",)


def test_a_failed_tool_leaves_doubt_and_says_where_to_look() -> None:
    world = ServiceWorld(publish())
    world.tools.broken.add("a")
    world.run()

    assert states(world) == ["uncertain"]
    assert world.effects[0].error == "the tool is broken"
    assert world.plan.error is not None
    assert "agents plan effects" in world.plan.error.hint


def test_a_tool_that_could_not_start_had_no_effect() -> None:
    world = ServiceWorld(publish())
    world.faults.fail("run a tool", ToolNotStartedError("no such program", "install it"))
    world.run()

    assert world.effects == []
    world.run()
    assert states(world) == ["done"]


def test_a_step_that_could_not_be_stored_leaves_doubt() -> None:
    world = ServiceWorld(publish())
    full = SnapshotFailedError("code", "no room")
    world.faults.fail("capture", None, full)

    with pytest.raises(SnapshotFailedError):
        world.run()

    assert ran(world) == ["publish"]
    assert states(world) == ["uncertain"]


# --- never twice unasked ------------------------------------------------------------------------


def test_after_a_crash_the_step_is_not_run_again_unasked() -> None:
    world = killed(ServiceWorld(publish()))
    with pytest.raises(EffectUncertainError) as caught:
        world.run()

    assert ran(world) == ["publish"]
    assert states(world) == ["uncertain"]
    assert world.files() == after()
    assert world.plan.state is State.QUEUED
    assert world.plan.error is not None
    assert (world.plan.error.code, world.plan.error.step) == ("effect-uncertain", 0)
    for choice in ("repeat", "skip"):
        assert f"agents plan resume --effects {choice} {world.plan_id}" in caught.value.hint


def test_stopping_before_a_step_records_no_group_and_no_call_however_often() -> None:
    world = killed(ServiceWorld(publish()))
    with pytest.raises(EffectUncertainError):
        world.run()
    before = (world.groups, world.calls, world.decisions)
    with pytest.raises(EffectUncertainError):
        world.run()
    assert (world.groups, world.calls, world.decisions) == before


def test_after_a_rollback_that_could_not_undo_it_the_step_is_not_run_again_unasked() -> None:
    world = ServiceWorld(publish(), append("b"))
    world.run()
    world.roll_back("start")

    with pytest.raises(EffectDoneError):
        world.run()

    assert ran(world) == ["publish", "append"]
    assert states(world) == ["done"]


def test_repeat_does_it_again_and_the_newest_run_counts_from_then_on() -> None:
    world = killed(ServiceWorld(publish(), append("b")))
    world.run(EffectChoice.REPEAT)

    assert ran(world) == ["publish", "publish", "append"]
    assert world.files() == after("a", "b")
    assert states(world) == ["uncertain", "done"]
    # The doubt about the first run was settled by whoever let the second one happen.
    report = world.roll_back("start").effects
    assert report == EffectReport(lasting=(PAGE,))


def test_skip_takes_the_step_as_done_with_the_recorded_result() -> None:
    world = ServiceWorld(publish(), append("b"))
    world.run()
    world.roll_back("start")

    plan = world.run(EffectChoice.SKIP)

    assert plan.state is State.COMPLETE
    assert ran(world) == ["publish", "append", "append"]
    assert world.files() == after("b")
    skipped = world.calls[0]
    assert (skipped.step_index, skipped.result.output) == (0, "appended")
    assert states(world) == ["done", "skipped"]
    assert world.effects[1].stands_for == world.effects[0].effect_id
    positions = [item.position.seq for item in (*world.decisions, *world.calls, *world.effects)]
    assert len(set(positions)) == len(positions)


def test_another_rollback_lists_a_skipped_effect_and_the_step_still_asks() -> None:
    world = ServiceWorld(publish())
    world.run()
    world.roll_back("start")
    world.run(EffectChoice.SKIP)

    assert world.roll_back("start").effects == EffectReport(lasting=(PAGE,))
    with pytest.raises(EffectDoneError):
        world.run()


def test_an_idempotent_tool_is_repeated_without_asking() -> None:
    world = killed(ServiceWorld(append("a", tool="put")))
    world.run()
    world.roll_back("start")
    world.run()

    assert ran(world) == ["put", "put", "put"]
    assert world.files() == after("a")


def test_the_same_tool_in_another_step_or_with_other_arguments_is_another_effect() -> None:
    world = ServiceWorld(publish("a"), publish("a"), publish("b"))
    world.run()
    assert states(world) == ["done"] * 3


def test_an_interrupted_step_says_what_it_may_have_done_outside() -> None:
    world = ServiceWorld(publish())
    world.faults.fail("wrote a file", KeyboardInterrupt())

    with pytest.raises(InterruptedPlanError) as caught:
        world.run()

    assert "the page is public" in caught.value.message
    assert states(world) == ["uncertain"]
    assert world.files() == after()
    with pytest.raises(EffectUncertainError):
        world.run()


def test_a_preview_tells_every_step_ahead_that_reached_outside_before() -> None:
    world = ServiceWorld(publish("a"), append("b"), publish("c"), append("d", tool="put"))
    world.run()
    world.roll_back("decision 1: add a")
    before = world.tables.copy()

    def told(choice: EffectChoice) -> list[tuple[int, EffectVerdict]]:
        point = world.resume.preview(world.plan_id, choice)
        return [(index, crossing.passage) for index, crossing in point.effects]

    assert told(EffectChoice.STOP) == [
        (0, EffectVerdict.STOP),
        (2, EffectVerdict.STOP),
        (3, EffectVerdict.RUN),
    ]
    assert told(EffectChoice.SKIP) == [
        (0, EffectVerdict.SKIP),
        (2, EffectVerdict.SKIP),
        (3, EffectVerdict.SKIP),
    ]
    assert told(EffectChoice.REPEAT) == [
        (0, EffectVerdict.RUN),
        (2, EffectVerdict.RUN),
        (3, EffectVerdict.RUN),
    ]
    assert world.tables == before


def test_a_tool_that_is_not_there_is_told_by_the_step_and_not_by_the_ledger() -> None:
    world = ServiceWorld(append("a", tool="nothing"))
    world.run()
    assert world.plan.error is not None
    assert world.plan.error.code == "tool-not-found"


def test_every_kill_in_execute_runs_the_tool_at_most_once_until_somebody_decides() -> None:
    for number in range(1, 200):
        world = ServiceWorld(append("x"), publish("a"))
        if not world.kill_at(number, lambda world=world: world.run()):
            break
        ran_before = ran(world).count("publish")
        try:
            world.run()
        except EffectUncertainError:
            world.run(EffectChoice.SKIP)
        assert ran(world).count("publish") == max(1, ran_before) or states(world)[0] == "uncertain"
        assert ran(world).count("publish") <= 1
        assert world.plan.state is State.COMPLETE
    else:
        pytest.fail("it does not end")


def test_a_ledger_shows_a_run_that_nobody_runs_as_uncertain() -> None:
    world = killed(ServiceWorld(publish()))
    assert states(world) == ["started"]
    found = world.queries.effects(world.plan_id)
    assert [effect.state for effect in found.effects] == [EffectState.UNCERTAIN]
    with world.locks.hold(world.plan_id, "execute"):
        running = world.queries.effects(world.plan_id)
    assert [effect.state for effect in running.effects] == [EffectState.STARTED]
    assert states(world) == ["started"]


def test_a_ledger_says_which_steps_were_rolled_back() -> None:
    world = ServiceWorld(publish("a"), publish("b"))
    world.run()
    world.roll_back("decision 2: add b")
    found = world.queries.effects(world.plan_id)
    assert found.undone == {world.effects[1].effect_id}
