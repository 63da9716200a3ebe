"""Kill the process at every port call: what is left is the old state or the new one."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from fakes import Killed
from service_world import CODE, DOCS, OPTIONS, TWO_PLACES, ServiceWorld, after, append

from cleveragents.domain.checkpoint import Trigger
from cleveragents.domain.errors import (
    ApplyRefusedError,
    PlanAppliedError,
    PlanError,
    RestoreFailedError,
)
from cleveragents.domain.plan import Phase, State
from cleveragents.domain.resource import SandboxStatus

MOST_CALLS = 500
FINISHED = {"code": after("a", "c"), "docs": after("b")}


def two_places(triggers: frozenset[Trigger] = frozenset(Trigger)) -> ServiceWorld:
    return ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS), triggers=triggers)


def executed() -> ServiceWorld:
    world = two_places()
    world.run()
    return world


def crashes(
    make: Callable[[], ServiceWorld], work: Callable[[ServiceWorld], object]
) -> Iterator[ServiceWorld]:
    """A new world for each port call of the work, killed there; the last one got through."""
    for number in range(1, MOST_CALLS):
        world = make()
        killed = world.kill_at(number, lambda world=world: work(world))
        yield world
        if not killed:
            assert number > 10, "nearly nothing was tried"
            return
    pytest.fail("the work does not end")


def states(world: ServiceWorld) -> dict[str, dict[str, str]]:
    return {"code": dict(world.files("code")), "docs": dict(world.files("docs"))}


def roll_back_to_first_step(world: ServiceWorld) -> object:
    return world.roll_back("decision 1: add a")


def assert_record_and_files_agree(world: ServiceWorld, *, at_the_beginning: bool) -> None:
    plan = world.plan
    assert plan.rollback_target is None
    assert plan.safety_group is None
    if at_the_beginning:
        assert states(world) == {"code": after(), "docs": after()}
        assert (plan.phase, plan.state) == (Phase.EXECUTE, State.QUEUED)
        assert plan.last_completed_step == -1
        assert [decision.step_index for decision in world.decisions] == [None, 0]
        assert world.calls == []
        assert plan.head == world.group("decision 1: add a").head
    else:
        assert states(world) == FINISHED
        assert (plan.phase, plan.state) == (Phase.EXECUTE, State.COMPLETE)
        assert plan.last_completed_step == 2
        assert [decision.step_index for decision in world.decisions] == [None, 0, 1, 2]
        assert [call.step_index for call in world.calls if not call.error] == [0, 1, 2]


# --- rollback -----------------------------------------------------------------------------------


def test_a_rollback_that_dies_anywhere_is_finished_or_has_never_happened() -> None:
    outcomes: list[bool] = []
    for world in crashes(executed, roll_back_to_first_step):
        world.recover()

        gone_back = world.plan.timeline > 0
        assert_record_and_files_agree(world, at_the_beginning=gone_back)
        outcomes.append(gone_back)
    # Once the intent is stored there is no way back to the old state, and before it no other.
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


def test_nothing_is_changed_before_the_intent_to_change_it_is_stored() -> None:
    for world in crashes(executed, roll_back_to_first_step):
        if world.plan.rollback_target is None and world.plan.timeline == 0:
            assert states(world) == FINISHED


def test_a_recovery_that_dies_too_is_finished_by_the_next_one() -> None:
    def half_way() -> ServiceWorld:
        world = executed()
        world.faults.fail("restored a file", Killed())
        with pytest.raises(Killed):
            roll_back_to_first_step(world)
        world.restart()
        assert world.plan.rollback_target is not None
        return world

    for world in crashes(half_way, lambda world: world.recover()):
        world.recover()
        assert_record_and_files_agree(world, at_the_beginning=True)


def test_after_a_rollback_that_died_the_plan_can_be_executed_to_its_end() -> None:
    for world in crashes(executed, roll_back_to_first_step):
        world.run()

        assert_record_and_files_agree(world, at_the_beginning=False)


def test_after_a_rollback_that_died_every_checkpoint_can_still_be_gone_back_to() -> None:
    for world in crashes(executed, roll_back_to_first_step):
        world.recover()
        assert world.checkpoints.damages(world.groups) == {}
        world.roll_back(world.group("after append add c").group_id)
        assert states(world) == FINISHED


def test_a_rollback_that_failed_and_died_while_it_was_put_back_is_mended() -> None:
    def quietly(world: ServiceWorld) -> None:
        world.snapshots.wrong_hashes = 1
        with suppress(RestoreFailedError):
            roll_back_to_first_step(world)

    for world in crashes(executed, quietly):
        world.snapshots.wrong_hashes = 0
        world.recover()
        assert_record_and_files_agree(world, at_the_beginning=world.plan.timeline > 0)


# --- execute ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "triggers", [frozenset(Trigger), frozenset[Trigger]()], ids=["all triggers", "none"]
)
def test_an_execution_that_dies_anywhere_does_each_step_exactly_once(
    triggers: frozenset[Trigger],
) -> None:
    for world in crashes(lambda: two_places(triggers), lambda world: world.run()):
        world.run()

        assert_record_and_files_agree(world, at_the_beginning=False)
        assert len(world.calls) == 3


def test_an_execution_that_dies_twice_does_each_step_exactly_once() -> None:
    def died_in_last_step() -> ServiceWorld:
        world = two_places()
        world.tools.broken.add("c")
        world.run()
        world.tools.broken.clear()
        world.faults.fail("wrote a file", Killed())
        with pytest.raises(Killed):
            world.run()
        world.restart()
        return world

    for world in crashes(died_in_last_step, lambda world: world.run()):
        world.run()
        assert_record_and_files_agree(world, at_the_beginning=False)


def test_after_an_execution_that_died_the_plan_can_be_rolled_back_to_its_start() -> None:
    for world in crashes(two_places, lambda world: world.run()):
        if not world.groups:
            continue
        world.roll_back("start")

        assert states(world) == {"code": after(), "docs": after()}
        assert world.plan.last_completed_step == -1
        assert [decision.step_index for decision in world.decisions] == [None]


def test_a_step_half_done_is_kept_as_a_checkpoint_before_it_is_undone() -> None:
    world = ServiceWorld(append("a"))
    world.faults.fail("wrote a file", Killed())
    with pytest.raises(Killed):
        world.run()
    world.restart()
    half = dict(world.files())

    world.run()
    world.roll_back("before resume")

    assert half == {**after(), "one.txt": "a\n"}
    assert world.files() == half


# --- apply --------------------------------------------------------------------------------------


def test_an_apply_that_dies_anywhere_is_finished_by_the_next_one() -> None:
    for world in crashes(executed, lambda world: world.apply()):
        with suppress(PlanError):
            world.apply()

        assert world.plan.state is State.APPLIED
        assert {name: world.project(name) for name in FINISHED} == FINISHED


def test_an_apply_that_died_before_its_intent_was_stored_has_changed_nothing() -> None:
    for world in crashes(executed, lambda world: world.apply()):
        stored = any(resource.intent is not None for resource in world.resources)
        if not stored:
            assert world.sandboxes.carried_out == []


def test_an_apply_that_died_is_finished_with_what_was_prepared_and_without_asking() -> None:
    world = executed()
    world.faults.fail("carried out code", Killed())
    with pytest.raises(Killed):
        world.apply()
    world.restart()
    world.files("docs")["late.txt"] = "not confirmed by anybody"

    world.applies.apply(world.plan_id, OPTIONS, lambda _: pytest.fail("asked again"))

    assert world.project("docs") == FINISHED["docs"]
    assert world.sandboxes.carried_out == ["code", "code", "docs"]


def test_an_apply_that_cannot_be_finished_and_dies_anywhere_is_taken_back_by_the_next_one() -> None:
    def refused(world: ServiceWorld) -> None:
        world.sandboxes.refusing = {"docs"}
        with suppress(ApplyRefusedError):
            world.apply()

    for world in crashes(executed, refused):
        with pytest.raises(ApplyRefusedError):
            world.apply()

        assert (world.plan.phase, world.plan.state) == (Phase.APPLY, State.CONSTRAINED)
        assert {name: world.project(name) for name in FINISHED} == {
            "code": after(),
            "docs": after(),
        }
        assert world.disk.kept == {}
        world.sandboxes.refusing.clear()
        world.apply()
        assert {name: world.project(name) for name in FINISHED} == FINISHED


def test_what_an_apply_that_died_did_not_clean_up_is_cleaned_up_later() -> None:
    for world in crashes(executed, lambda world: world.apply()):
        with suppress(PlanAppliedError):
            world.apply()

        assert [r.status for r in world.resources] == [SandboxStatus.REMOVED] * 2
        assert world.disk.kept == {}
        assert world.snapshots.forgotten
