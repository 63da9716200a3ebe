"""Checkpoint groups by hand: making, finding, proving, comparing and letting go."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from service_world import CODE, DOCS, TWO_PLACES, ServiceWorld, after, append

from cleveragents.domain.action import RollbackPolicy
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointReason, ResourceState
from cleveragents.domain.errors import (
    CheckpointNeededError,
    CheckpointNotFoundError,
    LabelTakenError,
    PlanAppliedError,
    PlanLockedError,
    PlanNotFoundError,
    PlanStateError,
    SnapshotFailedError,
)
from cleveragents.domain.events import CheckpointRecorded
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import State


@pytest.fixture
def world() -> ServiceWorld:
    made = ServiceWorld(*TWO_PLACES, resources=(CODE, DOCS))
    made.run()
    return made


# --- by hand ------------------------------------------------------------------------------------


def test_a_checkpoint_by_hand_holds_the_present_and_becomes_the_head(world: ServiceWorld) -> None:
    world.files()["mine.txt"] = "by hand"

    group = world.manual.create(world.plan_id, "mine")

    assert group == world.group("mine")
    assert (group.reason, group.source) == (CheckpointReason.MANUAL, "user")
    assert group.labelled_by_hand
    assert group.decision_id == world.decisions[-1].decision_id
    assert [checkpoint.resource for checkpoint in group.checkpoints] == ["code", "plan"]
    assert world.plan.head == group.head
    assert world.plan.state is State.COMPLETE
    world.files().clear()
    world.roll_back("mine")
    assert world.files() == {**after("a", "c"), "mine.txt": "by hand"}


def test_a_group_holds_what_differs_from_where_the_plan_stands_not_from_the_newest_group(
    world: ServiceWorld,
) -> None:
    world.roll_back("start")

    group = world.manual.create(world.plan_id, "mine")

    assert [checkpoint.resource for checkpoint in group.checkpoints] == ["plan"]


def test_a_label_is_given_by_hand_only_once(world: ServiceWorld) -> None:
    world.manual.create(world.plan_id, "mine")

    with pytest.raises(LabelTakenError) as caught:
        world.manual.create(world.plan_id, "mine")

    told = f"plan {world.plan_id} already has a checkpoint labelled 'mine'"
    assert caught.value.message == told


def test_a_label_that_only_an_automatic_group_has_is_free(world: ServiceWorld) -> None:
    group = world.manual.create(world.plan_id, "start")

    assert world.checkpoints.get_checkpoint(world.plan_id, "start") == group


def test_before_a_plan_has_started_there_is_nothing_to_capture() -> None:
    world = ServiceWorld()

    with pytest.raises(PlanStateError, match=f"{world.plan_id} has not started") as caught:
        world.manual.create(world.plan_id, "mine")
    assert caught.value.hint == f"agents plan execute {world.plan_id}"


def test_a_checkpoint_by_hand_stands_before_the_step_that_comes_next(world: ServiceWorld) -> None:
    assert world.manual.create(world.plan_id, "mine").step_index == 3
    world.roll_back("decision 2: add b")
    assert world.manual.create(world.plan_id, "another").step_index == 1


def failed() -> ServiceWorld:
    """Its second step has failed half-way."""
    made = ServiceWorld(append("a"), append("b"))
    made.tools.broken.add("b")
    made.run()
    made.tools.broken.clear()
    return made


def test_what_a_failed_step_left_is_captured_by_hand_but_no_part_of_the_plan() -> None:
    world = failed()
    half = dict(world.files())
    boundary = world.resources[0].boundary

    (state,) = world.manual.create(world.plan_id, "half").resource_states

    assert half != after("a")
    assert world.resources[0].boundary == boundary == state.boundary != state.snapshot
    world.run()
    assert world.files() == after("a", "b"), "the step began anew"


def test_a_rollback_into_the_middle_of_a_step_leaves_it_half_done() -> None:
    world = failed()
    world.manual.create(world.plan_id, "half")
    world.run()
    assert not world.stands_mid_step()

    world.roll_back("half")

    assert world.stands_mid_step()
    done = replace(world.plan, state=State.COMPLETE)
    assert not world.stands_mid_step(done), "whatever it stands on"
    world.manual.create(world.plan_id, "again")
    world.run()
    assert world.files() == after("a", "b")


def test_a_plan_that_waits_between_steps_has_nothing_half_done(world: ServiceWorld) -> None:
    assert not world.stands_mid_step()
    world.roll_back("decision 2: add b")
    assert not world.stands_mid_step()
    assert not ServiceWorld().stands_mid_step()


def test_a_plan_without_automatic_groups_can_have_one_by_hand() -> None:
    world = ServiceWorld(rollback_policy=RollbackPolicy(enabled=False))
    world.run()

    assert world.manual.create(world.plan_id, "mine").labelled_by_hand


def test_a_final_plan_gets_no_more_checkpoints(world: ServiceWorld) -> None:
    world.apply()

    with pytest.raises(PlanAppliedError):
        world.manual.create(world.plan_id, "mine")


def test_making_and_deleting_need_the_lock(world: ServiceWorld) -> None:
    world.locks.holders[world.plan_id] = "execute"

    with pytest.raises(PlanLockedError):
        world.manual.create(world.plan_id, "mine")
    with pytest.raises(PlanLockedError):
        world.manual.delete(world.plan_id, "start")


def test_a_snapshot_that_cannot_be_taken_leaves_no_group(world: ServiceWorld) -> None:
    tables = world.tables.copy()
    world.faults.fail("capture", None, SnapshotFailedError("the disk is full", "make room"))

    with pytest.raises(SnapshotFailedError):
        world.manual.create(world.plan_id, "mine")

    assert world.tables == tables


# --- looking ------------------------------------------------------------------------------------


def test_groups_are_listed_oldest_first_and_found_by_name(world: ServiceWorld) -> None:
    listed = world.checkpoints.list_checkpoints(world.plan_id)

    assert list(listed) == world.groups
    for group in listed:
        assert world.checkpoints.get_checkpoint(world.plan_id, group.head) == group


def test_an_unknown_plan_has_no_list(world: ServiceWorld) -> None:
    with pytest.raises(PlanNotFoundError):
        world.checkpoints.list_checkpoints(PlanId(world.ids.new()))
    with pytest.raises(PlanNotFoundError):
        world.checkpoints.get_checkpoint(PlanId(world.ids.new()), "start")


def test_damage_in_any_resource_is_found(world: ServiceWorld) -> None:
    group = world.group("after append add b")
    assert world.checkpoints.damages([group]) == {}

    for state in group.resource_states:
        world.snapshots.damaged = {state.snapshot}
        assert list(world.checkpoints.damages([group])) == [group.group_id]


def test_every_damaged_group_is_named_and_the_others_are_not(world: ServiceWorld) -> None:
    first, *_, last = world.groups
    world.snapshots.damaged = {last.resource_states[0].snapshot}

    damages = world.checkpoints.damages([first, last])

    assert list(damages) == [last.group_id]
    assert "`code`" in damages[last.group_id]


def test_damage_is_told_of_every_group_that_needs_the_snapshot(world: ServiceWorld) -> None:
    shared = world.group("after append add b").resource_states[0].snapshot
    world.snapshots.damaged = {shared}
    needing = [g.group_id for g in world.groups if g.resource_states[0].snapshot == shared]
    assert 1 < len(needing) < len(world.groups)

    assert list(world.checkpoints.damages(world.groups)) == needing


def test_each_snapshot_is_proven_once_however_many_groups_need_it(world: ServiceWorld) -> None:
    snapshots = {state.snapshot for group in world.groups for state in group.resource_states}
    states = sum(len(group.resource_states) for group in world.groups)
    world.faults.revive()

    assert world.checkpoints.damages(world.groups) == {}

    assert world.faults.calls.count("verify") == len(snapshots) < states


def test_a_group_with_damage_in_two_resources_has_the_reason_of_the_first(
    world: ServiceWorld,
) -> None:
    group = world.groups[-1]
    world.snapshots.damaged = {state.snapshot for state in group.resource_states}
    assert "`code`" in world.checkpoints.damages([group])[group.group_id]


def test_of_no_groups_none_is_damaged(world: ServiceWorld) -> None:
    assert world.checkpoints.damages([]) == {}


def test_what_differs_between_two_groups_is_named_with_its_resource(world: ServiceWorld) -> None:
    old, new = world.group("decision 2: add b"), world.group("after append add c")

    def named(kind: ChangeKind, code: ChangeKind) -> list[tuple[str, FileChange]]:
        return [
            *(("code", FileChange(path=path, kind=code)) for path in ("one.txt", "two.txt")),
            *(("docs", FileChange(path=path, kind=kind)) for path in ("one.txt", "two.txt")),
        ]

    between = world.checkpoints.changes_between
    assert between(old, new) == named(ChangeKind.ADDED, ChangeKind.MODIFIED)
    assert between(new, old) == named(ChangeKind.DELETED, ChangeKind.MODIFIED)
    assert between(new, new) == []


def test_of_a_resource_that_one_of_two_groups_does_not_know_nothing_is_told(
    world: ServiceWorld,
) -> None:
    old, new = world.group("decision 2: add b"), world.group("after append add c")
    code, docs = new.resource_states

    def differing(*states: ResourceState) -> set[str]:
        found = world.checkpoints.changes_between(old, replace(new, resource_states=states))
        return {name for name, _ in found}

    assert differing(code, docs) == {"code", "docs"}
    assert differing(code) == {"code"}
    assert differing(docs) == {"docs"}


def test_for_an_applied_plan_there_is_no_false_answer(world: ServiceWorld) -> None:
    group = world.group("start")
    world.apply()
    questions: list[Callable[[CheckpointGroup], object]] = [
        lambda group: world.checkpoints.damages([group]),
        lambda group: world.checkpoints.changes_between(group, group),
    ]

    for ask in questions:
        with pytest.raises(PlanAppliedError):
            ask(group)


# --- letting go ---------------------------------------------------------------------------------


def test_deleting_a_group_frees_what_only_it_needed(world: ServiceWorld) -> None:
    world.files()["big.bin"] = "x" * 1000
    only = world.manual.create(world.plan_id, "big").resource_states[0].snapshot
    del world.files()["big.bin"]
    world.manual.create(world.plan_id, "small")

    group, freed = world.manual.delete(world.plan_id, "big")

    assert group.label == "big"
    assert freed == 1
    assert only not in world.snapshots.versions[world.resources[0].resource_id]
    with pytest.raises(CheckpointNotFoundError):
        world.checkpoints.get_checkpoint(world.plan_id, "big")
    assert world.checkpoints.damages(world.groups) == {}


def test_the_record_goes_before_the_files(world: ServiceWorld) -> None:
    world.restart()

    world.manual.delete(world.plan_id, "start")

    calls = [call for call in world.faults.calls if call in ("commit", "keep_only")]
    assert calls == ["commit", "keep_only", "keep_only"]


def test_the_group_that_the_plan_stands_on_cannot_be_deleted(world: ServiceWorld) -> None:
    head = world.plan.head
    assert head

    with pytest.raises(CheckpointNeededError):
        world.manual.delete(world.plan_id, head)
    assert len(world.groups) == 10


def test_the_boundary_is_kept_whatever_groups_there_are(world: ServiceWorld) -> None:
    for group in world.groups[:-1]:
        world.manual.delete(world.plan_id, group.group_id)

    for resource in world.resources:
        kept = world.snapshots.versions[resource.resource_id].keys()
        assert resource.needed_snapshots() <= kept


def test_the_reasons_why_groups_stay_are_the_plans_own(world: ServiceWorld) -> None:
    world.roll_back("decision 2: add b")

    kept = world.manual.explain_retention(world.plan_id).decision.kept

    assert kept[world.group("decision 2: add b").group_id] == "the plan stands on it"
    assert kept[world.groups[0].group_id] == "the first"


def test_the_limit_of_the_action_wins_over_that_of_the_settings() -> None:
    world = ServiceWorld(rollback_policy=RollbackPolicy(max_checkpoints=2), max_states=3)

    world.run()

    assert len({group.state_hash for group in world.groups}) == 3  # and one is where it stands


def test_a_group_by_hand_survives_any_number_of_later_ones() -> None:
    world = ServiceWorld(append("a"), append("b"), append("c"), append("d"), max_states=3)
    world.tools.broken.add("b")
    world.run()
    world.manual.create(world.plan_id, "mine")
    files = dict(world.files())
    world.tools.broken.clear()

    world.run()
    world.roll_back("mine")

    assert world.files() == files


def test_each_group_is_announced_once_it_is_stored(world: ServiceWorld) -> None:
    told = world.events.of(CheckpointRecorded)
    assert [event.pruned for event in told] == [0] * 10
    assert [(event.group_id, event.reason, event.label) for event in told] == [
        (group.group_id, group.reason, group.label) for group in world.groups
    ]


def test_how_many_had_to_go_is_announced_with_the_last_group_that_was_stored_with_it() -> None:
    world = ServiceWorld(append("a"), append("b"), max_states=1)
    world.run()

    told = [(event.label, event.pruned) for event in world.events.of(CheckpointRecorded)]

    assert told == [
        ("start", 0),
        ("decision 1: add a", 0),
        ("before append add a", 0),
        ("after append add a", 0),
        ("decision 2: add b", 0),
        ("before append add b", 0),
        ("after append add b", 3),
    ]
    assert [group.label for group in world.groups][-2:] == [
        "before append add a",
        "after append add b",
    ]
