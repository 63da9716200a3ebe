"""Looking ahead changes nothing; single files come back without taking the plan back."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from fakes import Killed
from service_world import CODE, DOCS, TWO_PLACES, ServiceWorld, add_correction, after, append
from service_world import resource as a_resource
from test_service_crashes import crashes

from cleveragents.domain.action import RollbackPolicy
from cleveragents.domain.checkpoint import (
    DEFAULT_TRIGGERS,
    CheckpointReason,
    RollbackPreview,
    RollbackResult,
    Trigger,
)
from cleveragents.domain.correction import CorrectionStatus
from cleveragents.domain.errors import (
    PathNotFoundError,
    PlanAppliedError,
    RestoreFailedError,
    RollbackPendingError,
    SnapshotDamagedError,
    SnapshotFailedError,
    UsageError,
)
from cleveragents.domain.events import Recovered
from cleveragents.domain.plan import State


@pytest.fixture
def world() -> ServiceWorld:
    """A plan that has done its three steps in two resources."""
    return executed()


def executed() -> ServiceWorld:
    made = ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS))
    made.run()
    made.restart()
    return made


def failed() -> ServiceWorld:
    """Its second step has failed half-way."""
    made = ServiceWorld(append("a"), append("b"))
    made.tools.broken.add("b")
    made.run()
    made.tools.broken.clear()
    made.restart()
    return made


def look(world: ServiceWorld, wanted: str, *only: str) -> RollbackPreview:
    return world.rollbacks.preview(world.plan_id, wanted, only)


def bring_back(world: ServiceWorld, wanted: str, *only: str) -> RollbackResult:
    return world.rollbacks.rollback(world.plan_id, wanted, lambda _: True, only)


def names(found: RollbackPreview | RollbackResult) -> list[tuple[str, str]]:
    return [(item.file, item.action) for item in found.reverted]


# --- looking ahead ------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["start", "decision 2: add b", "after append add c"])
def test_what_is_foretold_is_what_happens(world: ServiceWorld, wanted: str) -> None:
    tables, files = world.tables.copy(), world.all_files()

    foretold = look(world, wanted)

    assert (world.tables, world.all_files()) == (tables, files)
    result = world.roll_back(wanted)
    for name in set(RollbackPreview.__struct_fields__) & set(result.__struct_fields__):
        assert getattr(foretold, name) == getattr(result, name), name


def test_the_question_shows_the_same_and_costs_nothing_unless_it_is_looked_at(
    world: ServiceWorld,
) -> None:
    seen: list[RollbackPreview] = []

    world.rollbacks.rollback(
        world.plan_id, "start", lambda question: not seen.append(question.preview)
    )

    assert names(seen[0]) == [
        ("code:one.txt", "removed"),
        ("code:two.txt", "removed"),
        ("docs:one.txt", "removed"),
        ("docs:two.txt", "removed"),
    ]


def test_foretelling_leaves_an_interrupted_rollback_as_it_is_and_says_so(
    world: ServiceWorld,
) -> None:
    world.faults.fail("restored a file", Killed())
    with pytest.raises(Killed):
        world.roll_back("decision 1: add a")
    world.restart()
    tables, files = world.tables.copy(), world.all_files()

    foretold = look(world, "start")

    assert foretold.finishes_first == world.group("decision 1: add a").group_id
    assert (world.tables, world.all_files()) == (tables, files)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [({"max_states": 1}, 5), ({"max_age": timedelta(hours=1)}, 2), ({"max_bytes": 20}, 5)],
)
def test_what_would_be_pruned_is_counted_in(limit: dict[str, Any], expected: int) -> None:
    world = ServiceWorld(append("a"), append("b"), **limit)
    world.run()
    world.clock.moment += timedelta(hours=2)

    foretold = look(world, "start")

    assert foretold.checkpoints_remaining == expected
    assert foretold.checkpoints_remaining == world.roll_back("start").checkpoints_remaining


@pytest.mark.parametrize("status", CorrectionStatus)
def test_what_a_correction_is_compared_with_is_counted_in(status: CorrectionStatus) -> None:
    world = ServiceWorld(append("a"), append("b"), max_states=1)
    world.run()
    add_correction(world, status, world.groups[1].group_id)

    foretold = look(world, "start")

    assert foretold.checkpoints_remaining == world.roll_back("start").checkpoints_remaining


@pytest.mark.parametrize("triggers", [(), DEFAULT_TRIGGERS])
@pytest.mark.parametrize("only", [(), ("code:one.txt",)])
@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("max_states", range(1, 7))
def test_what_is_foretold_is_what_is_left_however_near_the_limit(
    max_states: int, only: tuple[str, ...], triggers: Iterable[Trigger], *, edited: bool
) -> None:
    """One group of a state or several of it: both can be at the limit."""
    steps = [append(line) for line in "abcd"]
    world = ServiceWorld(*steps, max_states=max_states, triggers=triggers)
    world.run()
    if edited:
        world.files()["mine"] = "by hand"

    foretold = look(world, "start", *only)

    bring_back(world, "start", *only)
    assert foretold.checkpoints_remaining == len(world.groups)


# --- single files -------------------------------------------------------------------------------


def test_only_what_is_named_comes_back_and_the_plan_stays_where_it_is(world: ServiceWorld) -> None:
    before, decisions, calls = world.plan, world.decisions, world.calls
    foretold = look(world, "decision 3: add c", "code:one.txt")

    result = bring_back(world, "decision 3: add c", "code:one.txt")

    assert names(result) == names(foretold) == [("code:one.txt", "restored")]
    assert world.files("code") == {**after("a", "c"), "one.txt": "a\n"}
    assert world.files("docs") == after("b")
    assert (world.decisions, world.calls) == (decisions, calls)
    plan = world.plan
    assert (plan.state, plan.last_completed_step) == (before.state, before.last_completed_step)
    assert (plan.rollback_target, plan.safety_group, plan.rollback_only) == (None, None, ())
    assert (foretold.state, foretold.phase) == (plan.state, plan.phase)
    assert foretold.checkpoints_remaining == result.checkpoints_remaining == len(world.groups)


def test_the_plan_stands_on_a_group_of_its_own_then(world: ServiceWorld) -> None:
    result = bring_back(world, "start", "code:one.txt")

    newest = world.groups[-1]
    assert world.plan.head == newest.head
    assert newest.reason is CheckpointReason.FILES_RESTORED
    assert newest.label == "restored code:one.txt from start"
    assert newest.checkpoints[0].metadata["undo"] == result.undo_group.group_id
    assert "one.txt" not in world.files("code")


def test_it_can_be_undone(world: ServiceWorld) -> None:
    before = world.all_files()
    result = bring_back(world, "start", "code:one.txt", "docs:")
    assert world.files("docs") == after()

    world.roll_back(result.undo_group.group_id)

    assert world.all_files() == before


def test_what_came_back_is_there_after_a_resume_and_after_apply(world: ServiceWorld) -> None:
    bring_back(world, "start", "docs:one.txt")

    world.run()
    world.apply()

    assert "one.txt" not in world.project("docs")


def test_in_the_middle_of_a_step_that_step_is_undone_first() -> None:
    world = failed()
    foretold = look(world, "start", "two.txt")
    assert foretold.undoes_step

    result = bring_back(world, "start", "two.txt")

    assert names(result) == names(foretold) == [("one.txt", "restored"), ("two.txt", "removed")]
    assert world.files() == {**after(), "one.txt": "a\n"}
    assert (world.plan.state, world.plan.error) == (State.QUEUED, None)
    world.run()
    assert world.files() == {**after(), "one.txt": "a\nb\n", "two.txt": "b\n"}


def test_the_limit_of_groups_never_costs_the_way_to_undo_it() -> None:
    world = ServiceWorld(append("a"), append("b"), max_states=2)
    world.run()
    before = world.all_files()

    result = bring_back(world, "start", "one.txt")

    world.roll_back(result.undo_group.group_id)
    assert world.all_files() == before


@pytest.mark.parametrize("make", [executed, failed])
def test_wherever_it_dies_it_is_finished_or_has_never_happened(
    make: Callable[[], ServiceWorld],
) -> None:
    outcomes: list[bool] = []
    for world in crashes(make, lambda world: bring_back(world, "start", "code:two.txt")):
        middle = dict(world.files("code"))
        world.recover()
        done = CheckpointReason.FILES_RESTORED in {group.reason for group in world.groups}
        outcomes.append(done)
        assert ("two.txt" not in world.files("code")) == done
        assert world.plan.rollback_target is None
        assert world.plan.rollback_only == ()
        assert done or world.files("code") == middle
        assert world.checkpoints.damages(world.groups) == {}
        world.run()
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


def test_finishing_it_is_told(world: ServiceWorld) -> None:
    world.faults.fail("restored a file", Killed())
    with pytest.raises(Killed):
        bring_back(world, "start", "code:one.txt")
    world.restart()

    world.recover()

    (told,) = [
        event for event in world.events.of(Recovered) if "restoring of files" in event.message
    ]
    assert world.group("start").group_id in told.message


def test_a_failure_puts_everything_back(world: ServiceWorld) -> None:
    before = world.all_files()
    world.faults.fail("restored a file", RestoreFailedError("code", "no"))

    with pytest.raises(RestoreFailedError):
        bring_back(world, "start", "code:one.txt", "code:two.txt")

    assert world.all_files() == before
    assert world.plan.rollback_target is None
    assert world.plan.rollback_only == ()


def test_a_failure_that_cannot_be_put_back_is_finished_later(world: ServiceWorld) -> None:
    broken = RestoreFailedError("code", "no")
    world.faults.fail("restore", broken, broken)
    with pytest.raises(RollbackPendingError):
        bring_back(world, "start", "code:one.txt")

    world.restart()
    world.recover()

    assert "one.txt" not in world.files("code")
    assert "two.txt" in world.files("code")


def test_a_snapshot_that_cannot_be_taken_at_the_end_is_taken_by_the_next_command(
    world: ServiceWorld,
) -> None:
    # Two captures for the safety group, and then the first one of the new group.
    world.faults.fail("capture", None, None, SnapshotFailedError("full", "make room"))
    with pytest.raises(SnapshotFailedError):
        bring_back(world, "start", "code:one.txt")

    world.recover()

    assert world.groups[-1].reason is CheckpointReason.FILES_RESTORED


# --- refusals -----------------------------------------------------------------------------------


def test_what_cannot_be_right_is_refused_and_changes_nothing(world: ServiceWorld) -> None:
    tables, files = world.tables.copy(), world.all_files()
    for only, error in (
        (("code:nothing",), PathNotFoundError),
        (("one.txt",), UsageError),
        (("elsewhere:one.txt",), UsageError),
    ):
        with pytest.raises(error):
            bring_back(world, "start", *only)
        with pytest.raises(error):
            look(world, "start", *only)
    world.snapshots.damaged.add(world.group("start").resource_states[0].snapshot)
    with pytest.raises(SnapshotDamagedError):
        bring_back(world, "start", "code:one.txt")
    assert (world.tables, world.all_files()) == (tables, files)


def test_damage_elsewhere_does_not_keep_a_file_from_coming_back(world: ServiceWorld) -> None:
    world.snapshots.damaged.add(world.group("start").resource_states[1].snapshot)

    bring_back(world, "start", "code:one.txt")

    assert "one.txt" not in world.files("code")


def test_a_damaged_file_does_not_keep_another_from_coming_back(world: ServiceWorld) -> None:
    world.snapshots.damaged_files.add("two.txt")

    bring_back(world, "decision 3: add c", "code:one.txt")

    assert world.files("code") == {**after("a", "c"), "one.txt": "a\n"}
    for only in (["code:two.txt"], ["code:"], []):
        with pytest.raises(SnapshotDamagedError):
            bring_back(world, "decision 3: add c", *only)


def test_an_applied_plan_is_refused(world: ServiceWorld) -> None:
    world.apply()
    with pytest.raises(PlanAppliedError):
        bring_back(world, "start", "code:one.txt")


def test_a_resource_that_cannot_be_captured_has_no_files_to_bring_back() -> None:
    world = ServiceWorld(append("a"), resources=(CODE, a_resource("docs", checkpointable=False)))
    world.run()
    with pytest.raises(PathNotFoundError):
        bring_back(world, "start", "docs:one.txt")


# --- groups that nobody wanted ------------------------------------------------------------------


def test_without_a_rollback_policy_a_resume_makes_no_group_and_says_what_it_does() -> None:
    world = ServiceWorld(append("a"), append("b"), rollback_policy=RollbackPolicy(enabled=False))
    world.faults.fail("wrote a file", None, None, Killed())
    with suppress(Killed):
        world.run()
    world.restart()

    world.run()

    assert world.groups == []
    assert world.files() == after("a", "b")
    assert any("is not kept" in event.message for event in world.events.of(Recovered))
