"""Starting and going on: the sandboxes are made once, and a half-done step is undone first."""

import pytest
from fakes import Killed
from service_world import CODE, DOCS, TWO_PLACES, ServiceWorld, after

from cleveragents.domain.errors import (
    DatabaseBusyError,
    InterruptedPlanError,
    OutOfResourcesError,
    PlanAppliedError,
    PlanCancelledError,
    PlanLockedError,
    PlanNotFoundError,
    SandboxError,
    SandboxMissingError,
    SnapshotFailedError,
)
from cleveragents.domain.events import PlanStarted, Recovered, SandboxCreating
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Phase, State
from cleveragents.domain.resource import SandboxStatus


@pytest.fixture
def world() -> ServiceWorld:
    return ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS))


def test_each_sandbox_is_made_once_and_remembers_how_it_began(world: ServiceWorld) -> None:
    world.tools.broken.add("b")
    world.run()
    world.tools.broken.clear()
    world.run()

    assert [e.resource for e in world.events.of(SandboxCreating)] == ["code", "docs"]
    for resource in world.resources:
        assert resource.status is SandboxStatus.READY
        assert resource.base_snapshot is not None
        base = world.snapshots.versions[resource.resource_id][resource.base_snapshot]
        assert base == after()


def test_a_sandbox_that_cannot_be_made_makes_the_plan_errored_and_can_be_tried_again(
    world: ServiceWorld,
) -> None:
    world.faults.fail("create docs", SandboxError("no space", "make room"))

    with pytest.raises(SandboxError):
        world.run()

    assert (world.plan.phase, world.plan.state) == (Phase.EXECUTE, State.ERRORED)
    assert world.plan.error is not None
    assert (world.plan.error.message, world.plan.error.hint) == ("no space", "make room")
    assert world.run().state is State.COMPLETE


@pytest.mark.parametrize("taken", [0, 1], ids=["of the first sandbox", "of the second"])
def test_a_first_snapshot_that_cannot_be_taken_stops_the_plan_before_it_writes(
    world: ServiceWorld, taken: int
) -> None:
    full = SnapshotFailedError("the disk is full", "make room")
    world.faults.fail("capture", *[None] * taken, full)

    with pytest.raises(SnapshotFailedError):
        world.run()

    assert world.plan.state is State.ERRORED
    assert world.plan.error is not None
    assert world.plan.error.code == "snapshot-failed"
    assert world.files() == after()
    assert world.run().state is State.COMPLETE


def test_a_snapshot_that_cannot_be_taken_stops_the_plan_before_its_next_write(
    world: ServiceWorld,
) -> None:
    full = SnapshotFailedError("the disk is full", "make room")
    world.faults.fail("capture", *[None] * 2, full)

    with pytest.raises(SnapshotFailedError):
        world.run()

    assert world.files("docs") == after()
    assert world.run().state is State.COMPLETE
    assert world.files() == after("a", "c")


def test_too_little_memory_for_a_snapshot_is_why_the_plan_stopped(world: ServiceWorld) -> None:
    world.faults.fail("capture", *[None] * 2, MemoryError())

    with pytest.raises(OutOfResourcesError):
        world.run()

    assert world.plan.state is State.ERRORED
    assert world.plan.error is not None
    assert world.plan.error.code == "out-of-resources"
    assert world.run().state is State.COMPLETE
    assert world.files() == after("a", "c")


def test_a_busy_database_is_not_the_plans_fault(world: ServiceWorld) -> None:
    world.faults.fail("commit", None, None, DatabaseBusyError("x"))

    with pytest.raises(DatabaseBusyError):
        world.run()

    assert world.plan.error is None
    assert world.run().state is State.COMPLETE
    assert world.files() == after("a", "c")


def test_a_complete_plan_stays_complete_if_space_cannot_be_freed(world: ServiceWorld) -> None:
    world.faults.fail("keep_only", SnapshotFailedError("the disk is read-only", "remount it"))

    world.run()

    assert world.plan.state is State.COMPLETE
    assert any("the disk is read-only" in str(event) for event in world.events.events)


# --- interrupted by Ctrl-C ----------------------------------------------------------------------


def test_an_interruption_undoes_the_running_step_and_keeps_the_others(
    world: ServiceWorld,
) -> None:
    world.faults.fail("wrote a file", None, None, KeyboardInterrupt())

    with pytest.raises(InterruptedPlanError):
        world.run()

    assert (world.plan.phase, world.plan.state) == (Phase.EXECUTE, State.QUEUED)
    assert world.plan.last_completed_step == 0
    assert (world.files("code"), world.files("docs")) == (after("a"), after())
    assert world.locks.holders == {}
    assert world.run().state is State.COMPLETE
    assert (world.files("code"), world.files("docs")) == (after("a", "c"), after("b"))


def test_an_interruption_before_the_first_step_leaves_the_plan_queued(
    world: ServiceWorld,
) -> None:
    world.faults.fail("create docs", KeyboardInterrupt())

    with pytest.raises(InterruptedPlanError):
        world.run()

    assert world.plan.state is State.QUEUED
    assert world.run().state is State.COMPLETE


def test_an_impatient_second_interruption_is_mended_by_the_next_run(world: ServiceWorld) -> None:
    world.faults.fail("wrote a file", None, None, KeyboardInterrupt())
    world.faults.fail("restore", KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        world.run()

    assert world.run().state is State.COMPLETE
    assert (world.files("code"), world.files("docs")) == (after("a", "c"), after("b"))


# --- after a crash ------------------------------------------------------------------------------


def died_in_second_step(world: ServiceWorld) -> None:
    world.faults.fail("wrote a file", None, None, Killed())
    with pytest.raises(Killed):
        world.run()
    world.restart()
    assert world.files("docs") == {**after(), "one.txt": "b\n"}


def test_what_a_dead_process_left_behind_is_undone_and_told(world: ServiceWorld) -> None:
    died_in_second_step(world)

    world.run()

    kept, undone = (event.message for event in world.events.of(Recovered))
    assert kept == f"what is undone is kept in {world.group('before resume').group_id}"
    assert undone == "undid 1 change of an unfinished step"
    assert world.events.of(PlanStarted)[-1].first_step == 1


def test_where_nothing_was_left_behind_nothing_is_undone(world: ServiceWorld) -> None:
    world.faults.fail("run a tool", None, Killed())
    with pytest.raises(Killed):
        world.run()
    world.restart()

    world.run()

    assert world.events.of(Recovered) == []
    assert "before_rollback" not in world.reasons


def test_a_sandbox_that_was_lost_is_named_and_nothing_is_captured(world: ServiceWorld) -> None:
    died_in_second_step(world)
    groups = len(world.groups)
    del world.disk.sandboxes[f"/sandboxes/{world.plan_id}/docs"]

    with pytest.raises(SandboxMissingError):
        world.run()

    assert len(world.groups) == groups


def test_work_done_by_hand_in_a_waiting_plan_is_kept_as_a_checkpoint(world: ServiceWorld) -> None:
    world.tools.broken.add("b")
    world.run()
    world.tools.broken.clear()
    world.files("code")["mine.txt"] = "by hand"

    world.run()
    assert "mine.txt" not in world.files("code")
    world.roll_back("before resume")

    assert world.files("code")["mine.txt"] == "by hand"


# --- preview ------------------------------------------------------------------------------------


def test_a_preview_says_where_it_would_go_on_and_changes_nothing(world: ServiceWorld) -> None:
    assert world.resume.preview(world.plan_id).next_step == 0
    died_in_second_step(world)
    tables, files = world.tables.copy(), world.all_files()

    point = world.resume.preview(world.plan_id)

    assert (point.next_step, point.finishes_rollback) == (1, False)
    assert world.tables == tables
    assert world.all_files() == files


def test_a_preview_of_a_complete_plan_has_nothing_left(world: ServiceWorld) -> None:
    world.run()

    assert world.resume.preview(world.plan_id).next_step is None


def test_a_preview_says_that_a_rollback_will_be_finished_first(world: ServiceWorld) -> None:
    world.run()
    world.faults.fail("restored a file", Killed())
    with pytest.raises(Killed):
        world.roll_back("start")
    world.restart()

    assert world.resume.preview(world.plan_id).finishes_rollback


def test_a_preview_of_an_unfinished_rollback_goes_on_from_its_target(world: ServiceWorld) -> None:
    world.run()
    world.faults.fail("restored a file", Killed())
    with pytest.raises(Killed):
        world.roll_back("decision 2: add b")
    world.restart()

    promised = world.resume.preview(world.plan_id).next_step
    world.events.events.clear()
    world.run()

    assert promised == world.events.of(PlanStarted)[0].first_step == 1


# --- refusals -----------------------------------------------------------------------------------


def test_final_unknown_and_busy_plans_are_refused(world: ServiceWorld) -> None:
    world.locks.holders[world.plan_id] = "rollback"
    with pytest.raises(PlanLockedError):
        world.run()
    world.locks.holders.clear()

    with pytest.raises(PlanNotFoundError):
        world.resume.run(PlanId(world.ids.new()))

    world.run()
    world.apply()
    for refused in (world.run, lambda: world.resume.preview(world.plan_id)):
        with pytest.raises(PlanAppliedError):
            refused()

    world.plan_id = world.plans.use("b.yaml", {}, include_uncommitted=False).plan.plan_id
    world.plans.cancel(world.plan_id)
    for refused in (world.run, lambda: world.resume.preview(world.plan_id)):
        with pytest.raises(PlanCancelledError):
            refused()
