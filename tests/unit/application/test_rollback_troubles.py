"""The way back in trouble: what fails is put back, what died is finished, the rest is refused."""

from collections.abc import Callable

import pytest
from fakes import Killed
from msgspec.structs import replace
from rollback_world import world
from service_world import ServiceWorld, after

from cleveragents.domain.checkpoint import CheckpointReason
from cleveragents.domain.errors import (
    CheckpointAmbiguousError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    CheckpointRequiredError,
    ConfirmationNeededError,
    DeclinedError,
    PlanAppliedError,
    PlanCancelledError,
    PlanError,
    PlanLockedError,
    PlanNotFoundError,
    PlanStateError,
    RestoreFailedError,
    RollbackPendingError,
    SandboxMissingError,
    SnapshotDamagedError,
    SnapshotFailedError,
)
from cleveragents.domain.events import Recovered
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import State

__all__ = ["world"]


# --- when it fails ------------------------------------------------------------------------------


def at_the_first_resource(world: ServiceWorld) -> None:
    world.faults.fail("restore", RestoreFailedError("code", "the disk is full"))


def at_the_second_resource(world: ServiceWorld) -> None:
    world.faults.fail("restore", None, RestoreFailedError("docs", "the disk is full"))


def wrong_hash(world: ServiceWorld) -> None:
    world.snapshots.wrong_hashes = 1


def half_of_the_files(world: ServiceWorld) -> None:
    world.faults.fail("restored a file", RestoreFailedError("code", "the disk is full"))


@pytest.mark.parametrize(
    "fault", [at_the_first_resource, at_the_second_resource, wrong_hash, half_of_the_files]
)
def test_a_rollback_that_fails_puts_back_the_state_before_it(
    world: ServiceWorld, fault: Callable[[ServiceWorld], None]
) -> None:
    files, plan = world.all_files(), world.plan
    fault(world)

    with pytest.raises(RestoreFailedError):
        world.roll_back("start")

    assert world.all_files() == files
    safety = world.groups[-1]
    assert safety.reason is CheckpointReason.BEFORE_ROLLBACK
    assert world.plan == replace(plan, head=safety.head, seq=plan.seq + 1)
    assert len(world.decisions) == 4
    assert len(world.calls) == 3
    assert world.plan.executed


def test_after_a_rollback_that_failed_it_can_be_tried_again(world: ServiceWorld) -> None:
    wrong_hash(world)
    with pytest.raises(RestoreFailedError):
        world.roll_back("start")

    world.roll_back("start")

    assert (world.files("code"), world.files("docs")) == (after(), after())


def test_if_even_putting_back_fails_the_intent_stays_for_the_next_command(
    world: ServiceWorld,
) -> None:
    world.snapshots.wrong_hashes = 2
    with pytest.raises(RollbackPendingError):
        world.roll_back("start")
    assert world.plan.rollback_target == world.group("start").group_id

    world.run()

    assert world.plan.rollback_target is None
    assert (world.files("code"), world.files("docs")) == (after("a", "c"), after("b"))


def test_a_rollback_that_is_done_is_not_told_as_failed_if_space_cannot_be_freed(
    world: ServiceWorld,
) -> None:
    world.faults.fail("keep_only", SnapshotFailedError("the disk is read-only", "remount it"))

    result = world.roll_back("start")

    assert world.plan.last_completed_step == -1
    assert result.undo_group.group_id in world.tables.groups


# --- recovery -----------------------------------------------------------------------------------


def interrupted(world: ServiceWorld) -> None:
    world.faults.fail("restored a file", Killed())
    with pytest.raises(Killed):
        world.roll_back("start")
    world.restart()
    assert world.plan.rollback_target is not None


def test_the_next_command_finishes_a_rollback_that_died_and_says_so(world: ServiceWorld) -> None:
    target = world.group("start").group_id
    interrupted(world)

    world.recover()

    assert (world.files("code"), world.files("docs")) == (after(), after())
    assert world.plan.last_completed_step == -1
    (event,) = world.events.of(Recovered)
    assert target in event.message


def test_recovering_where_nothing_is_unfinished_changes_nothing(world: ServiceWorld) -> None:
    tables = world.tables.copy()

    assert world.recover() == world.plan
    assert world.tables == tables
    assert world.events.of(Recovered) == []


def test_a_rollback_that_died_can_be_followed_by_another_one(world: ServiceWorld) -> None:
    interrupted(world)

    result = world.roll_back("after append add b")
    assert (world.files("code"), world.files("docs")) == (after("a"), after("b"))

    # The half-restored files were nobody's state, so they are not what an undo leads to.
    world.roll_back(result.undo_group.group_id)
    assert (world.files("code"), world.files("docs")) == (after(), after())


def test_a_manual_checkpoint_is_made_only_after_the_unfinished_rollback_is_finished(
    world: ServiceWorld,
) -> None:
    interrupted(world)

    world.manual.create(world.plan_id, "mine")

    assert world.group("mine").last_completed_step == -1


def test_the_groups_of_an_unfinished_rollback_cannot_be_deleted(world: ServiceWorld) -> None:
    interrupted(world)
    target, safety = world.plan.rollback_target, world.plan.safety_group
    assert target and safety

    for group_id in (target, safety):
        with pytest.raises(PlanError, match="an unfinished rollback"):
            world.manual.delete(world.plan_id, group_id)


@pytest.mark.parametrize("command", ["execute", "rollback", "apply"])
def test_a_plan_that_was_cancelled_in_an_unfinished_rollback_stays_cancelled(
    world: ServiceWorld, command: str
) -> None:
    interrupted(world)
    world.plans.cancel(world.plan_id)
    commands: dict[str, Callable[[], object]] = {
        "execute": world.run,
        "rollback": lambda: world.roll_back("start"),
        "apply": world.apply,
    }

    with pytest.raises(PlanCancelledError):
        commands[command]()

    assert world.plan.state is State.CANCELLED


# --- refusals: nothing is changed ---------------------------------------------------------------


def refused(world: ServiceWorld, wanted: str | None, error: type[PlanError]) -> PlanError:
    tables, files = world.tables.copy(), world.all_files()
    with pytest.raises(error) as caught:
        world.rollbacks.rollback(world.plan_id, wanted, lambda _: True)
    assert world.tables == tables
    assert world.all_files() == files
    assert world.locks.holders.get(world.plan_id) != "rollback"
    return caught.value


def test_a_missing_checkpoint_is_refused_with_those_there_are(world: ServiceWorld) -> None:
    error = refused(world, None, CheckpointRequiredError)

    told = [line.split(maxsplit=4) for line in error.message.splitlines()[1:]]
    assert [(line[0], line[4]) for line in told] == [
        ("0", "start"), ("1", "add a"), ("2", "add b"), ("3", "add c"),
    ]  # fmt: skip


def test_an_unknown_or_ambiguous_checkpoint_is_refused(world: ServiceWorld) -> None:
    refused(world, "nothing", CheckpointNotFoundError)
    refused(world, world.groups[0].group_id[:5], CheckpointAmbiguousError)


def test_a_checkpoint_of_another_plan_is_refused(world: ServiceWorld) -> None:
    foreign = world.groups[0].group_id
    world.plan_id = world.plans.use("b.yaml", {}, include_uncommitted=False).plan.plan_id

    refused(world, foreign, CheckpointMismatchError)


def test_an_unknown_plan_is_refused(world: ServiceWorld) -> None:
    world.plan_id = PlanId(world.ids.new())

    refused(world, "start", PlanNotFoundError)


def test_an_applied_or_cancelled_plan_is_refused(world: ServiceWorld) -> None:
    world.apply()
    refused(world, "start", PlanAppliedError)

    world.plan_id = world.plans.use("b.yaml", {}, include_uncommitted=False).plan.plan_id
    world.plans.cancel(world.plan_id)
    refused(world, "start", PlanCancelledError)


def test_an_unfinished_apply_is_finished_before_anything_goes_back(world: ServiceWorld) -> None:
    world.faults.fail("carried out code", Killed())
    with pytest.raises(Killed):
        world.apply()
    world.restart()

    refused(world, "start", PlanStateError)


def test_a_plan_in_use_is_refused_with_its_user(world: ServiceWorld) -> None:
    world.locks.holders[world.plan_id] = "execute"

    assert "execute" in refused(world, "start", PlanLockedError).message


def test_a_missing_sandbox_is_refused(world: ServiceWorld) -> None:
    del world.disk.sandboxes[f"/sandboxes/{world.plan_id}/docs"]

    refused(world, "start", SandboxMissingError)


def test_a_damaged_snapshot_is_refused(world: ServiceWorld) -> None:
    state = world.group("start").resource_states[1]
    world.snapshots.damaged.add(state.snapshot)

    refused(world, "start", SnapshotDamagedError)


def test_whoever_says_no_or_cannot_be_asked_changes_nothing(world: ServiceWorld) -> None:
    tables, files = world.tables.copy(), world.all_files()

    def cannot_ask(_: object) -> bool:
        raise ConfirmationNeededError("the rollback")

    with pytest.raises(DeclinedError):
        world.rollbacks.rollback(world.plan_id, "start", lambda _: False)
    with pytest.raises(ConfirmationNeededError):
        world.rollbacks.rollback(world.plan_id, "start", cannot_ask)

    assert world.tables == tables
    assert world.all_files() == files
