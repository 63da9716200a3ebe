"""Letting go of groups: what the rule says is done and on record, and what is needed stays."""

from datetime import timedelta

import pytest
from fakes import Killed
from msgspec.structs import replace
from service_world import CODE, DOCS, TWO_PLACES, ServiceWorld, add_correction, append

from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.checkpoints.pruning import pins
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.correction import CorrectionStatus
from cleveragents.domain.decision import Position
from cleveragents.domain.errors import (
    CheckpointNeededError,
    CheckpointNotFoundError,
    PlanLockedError,
    SnapshotFailedError,
)
from cleveragents.domain.events import Recovered
from cleveragents.domain.ids import DecisionId, GroupId, PlanId, ResourceId
from cleveragents.domain.subplan import ChildPlan

HOUR = timedelta(hours=1)


@pytest.fixture
def old() -> ServiceWorld:
    """A plan that is done, all of whose groups are older than it wants to keep them."""
    made = ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS), max_age=HOUR)
    made.run()
    made.clock.moment += 2 * HOUR
    return made


def kept(world: ServiceWorld) -> dict[GroupId, str]:
    return dict(world.manual.explain_retention(world.plan_id).decision.kept)


# --- by hand ------------------------------------------------------------------------------------


def test_what_pruning_would_do_is_what_it_does(old: ServiceWorld) -> None:
    tables, groups = old.tables.copy(), old.groups
    first, *others, last = groups
    expected = {first.group_id: "the first", last.group_id: "the plan stands on it"}

    foretold = old.manual.explain_retention(old.plan_id)

    assert old.tables == tables
    assert [outline.group_id for outline in foretold.groups] == [g.group_id for g in groups]
    assert foretold.decision.kept == expected
    assert foretold.decision.removed == {g.group_id: "older than 1 hour" for g in others}
    done, freed = old.manual.prune(old.plan_id)
    assert done == foretold
    assert old.groups == [first, last]
    assert freed == 1, "the state of `code` between its two steps, which only those had that went"


def test_what_was_pruned_is_remembered_with_time_and_reason(old: ServiceWorld) -> None:
    gone = old.groups[1]
    before = old.clock.moment

    old.manual.prune(old.plan_id)

    _, record = old.tables.pruned[gone.group_id]
    assert before < record.pruned_at <= old.clock.moment
    with pytest.raises(CheckpointNotFoundError, match="older than 1 hour"):
        old.checkpoints.get_checkpoint(old.plan_id, gone.group_id)


def test_what_was_deleted_by_hand_is_remembered_as_such(old: ServiceWorld) -> None:
    before = old.clock.moment

    old.manual.delete(old.plan_id, "start")

    ((_, record),) = old.tables.pruned.values()
    assert record.reason == "deleted by hand"
    assert before < record.pruned_at <= old.clock.moment


def test_the_lock_tells_others_what_is_being_done(old: ServiceWorld) -> None:
    old.locks.taken.clear()

    old.manual.create(old.plan_id, "mine")
    old.manual.delete(old.plan_id, "start")
    old.manual.prune(old.plan_id)

    assert old.locks.taken == ["checkpoint create", "checkpoint delete", "checkpoint prune"]
    old.locks.holders[old.plan_id] = "plan execute"
    with pytest.raises(PlanLockedError):
        old.manual.prune(old.plan_id)


@pytest.mark.parametrize("work", ["create", "prune"])
def test_a_rollback_that_was_cut_off_is_finished_first(old: ServiceWorld, work: str) -> None:
    old.faults.fail("restored a file", Killed())
    with pytest.raises(Killed):
        old.roll_back("start")
    old.restart()

    if work == "create":
        old.manual.create(old.plan_id, "mine")
    else:
        old.manual.prune(old.plan_id)

    assert old.plan.rollback_target is None
    assert old.files() == {"README": "hello"}


# --- what is needed -----------------------------------------------------------------------------


def test_both_ends_of_a_rollback_that_is_not_finished_stay(old: ServiceWorld) -> None:
    target, safety = old.groups[2].group_id, old.groups[4].group_id
    plan = old.plan.begin_rollback(target, safety)
    old.tables.plans[old.plan_id] = plan

    reasons = kept(old)

    assert reasons[target] == "an unfinished rollback leads to it"
    assert reasons[safety] == "an unfinished rollback is undone with it"
    assert pins(plan) == {group: reasons[group] for group in (target, safety)}
    for group in (target, safety):
        with pytest.raises(CheckpointNeededError) as caught:
            old.manual.delete(old.plan_id, group)
        assert group in caught.value.message
        assert reasons[group] in caught.value.message
        assert old.plan_id in caught.value.hint


def test_the_group_that_the_plan_stands_on_is_refused_by_name(old: ServiceWorld) -> None:
    last = old.groups[-1].group_id

    with pytest.raises(CheckpointNeededError) as caught:
        old.manual.delete(old.plan_id, last)

    assert caught.value.message.startswith(f"checkpoint group {last} ")
    assert caught.value.message.endswith("the plan stands on it")
    assert old.plan_id in caught.value.hint


@pytest.mark.parametrize("status", CorrectionStatus)
def test_what_a_correction_is_compared_with_stays_once_it_is_done(
    old: ServiceWorld, status: CorrectionStatus
) -> None:
    safety = old.groups[3].group_id
    add_correction(old, status, safety)
    add_correction(old, status, None)

    assert (kept(old).get(safety) == "a correction is compared with it") == (
        status is CorrectionStatus.DONE
    )
    old.manual.prune(old.plan_id)
    assert (safety in old.tables.groups) == (status is CorrectionStatus.DONE)


def test_a_group_more_costs_neither_what_is_compared_nor_more_than_it_must() -> None:
    world = ServiceWorld(append("a"), append("b"), append("c"), max_states=3)
    world.run()
    before, safety = world.groups, world.group("decision 2: add b").group_id
    add_correction(world, CorrectionStatus.DONE, safety)

    world.files()["new"] = "state"
    world.manual.create(world.plan_id, "mine")
    world.manual.create(world.plan_id, "mine too")

    gone = [group.label for group in before if group not in world.groups]
    assert gone == ["after append add b", "decision 3: add c", "before append add c"]


def test_a_limit_of_bytes_holds_with_every_group_that_is_added() -> None:
    world = ServiceWorld(append("a"), append("b"), append("c"), max_bytes=25)
    world.run()

    records = [record for _, record in world.tables.pruned.values()]
    reasons = {record.reason for record in records}

    assert all(record.pruned_at <= world.clock.moment for record in records)
    assert reasons == {"more than 25 bytes, and among the oldest"}
    assert not world.manual.explain_retention(world.plan_id).decision.removed


def test_progress_that_is_stored_without_a_group_costs_none(old: ServiceWorld) -> None:
    groups = old.groups
    moment = CheckpointMoment(
        reason=CheckpointReason.BEFORE_STEP,
        source="test",
        label="before step",
        decision_id=None,
        step_index=3,
    )

    held = HeldResources(old.resources)
    done = old.checkpoints.auto_create_if_configured(Trigger.BEFORE_STEP, old.plan, held, moment)

    assert done.plan == old.plan
    assert old.groups == groups


# --- what is freed ------------------------------------------------------------------------------


def test_work_that_is_done_stays_done_where_nothing_can_be_freed(old: ServiceWorld) -> None:
    old.faults.fail("keep_only", SnapshotFailedError("the disk is read-only", "mount it"))

    old.checkpoints.free_space(old.plan_id)

    (told,) = old.events.of(Recovered)
    assert told.message == "old snapshots stay for now: the disk is read-only"


def test_what_a_child_was_branched_from_stays_while_a_group_leads_back_into_its_step(
    old: ServiceWorld,
) -> None:
    ref, decision = branched(old)
    code = old.resources[0].resource_id

    for group in old.groups[1:-1]:
        assert ref in old.snapshots.versions[code]
        old.manual.delete(old.plan_id, group.group_id)
        if all(left.decision_id != decision for left in old.groups):
            break

    assert ref not in old.snapshots.versions[code]


def test_what_a_child_was_branched_from_stays_until_its_step_is_over(old: ServiceWorld) -> None:
    ref, _ = branched(old)
    code = old.resources[0].resource_id
    done = old.plan

    old.tables.plans[old.plan_id] = replace(done, last_completed_step=0)
    for group in old.groups[1:-1]:
        old.manual.delete(old.plan_id, group.group_id)
    assert ref in old.snapshots.versions[code]

    old.tables.plans[old.plan_id] = replace(done, last_completed_step=1)
    old.checkpoints.sweep(old.plan_id)
    assert ref not in old.snapshots.versions[code]


def branched(world: ServiceWorld) -> tuple[str, DecisionId]:
    """As if step 1 had spawned a child from a state of `code` that no group holds."""
    code, ref = world.resources[0], "what it was branched from"
    world.snapshots.versions[code.resource_id][ref] = {}
    (decision,) = [d.decision_id for d in world.decisions if d.step_index == 1]
    child = ChildPlan(
        plan_id=PlanId(world.ids.new()),
        parent_id=world.plan_id,
        root_id=world.plan_id,
        decision_id=decision,
        name="en",
        index=0,
        position=Position(timeline=0, seq=1),
    )
    world.tables.children[child.plan_id] = child
    own = ResourceId(world.ids.new())
    world.tables.resources[own] = replace(
        code, resource_id=own, plan_id=child.plan_id, branched_at=ref
    )
    # One that was not branched from anything needs nothing.
    other = ResourceId(world.ids.new())
    world.tables.resources[other] = replace(code, resource_id=other, plan_id=child.plan_id)
    return ref, decision
