"""A checkpoint group is complete before it is stored, and proves what it holds by hashes."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from domain_builders import CODE, DOCS, LATER, NOW, a_group, a_plan, a_resource, ids, stood_at, ulid
from msgspec.structs import replace

from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import (
    Checkpoint,
    CheckpointGroup,
    CheckpointMoment,
    CheckpointReason,
    ResourceState,
    Snapshot,
    SparedSince,
)
from cleveragents.domain.decision import Position
from cleveragents.domain.group_builder import GroupDraft, build_group, hash_of, holds
from cleveragents.domain.ids import CheckpointId, DecisionId, GroupId
from cleveragents.domain.plan import Phase

DECISION = DecisionId(ulid(70))
MOMENT = CheckpointMoment(
    reason=CheckpointReason.ON_TOOL_WRITE,
    source="file.write",
    label="before file.write a",
    decision_id=DECISION,
    step_index=3,
)
PLAN = a_plan(
    phase=Phase.EXECUTE,
    timeline=2,
    seq=9,
    last_completed_step=2,
    attempt=4,
    actor_state={"next_step": 3},
)


def captured(**hashes: str) -> dict[Any, Snapshot]:
    keys = {"code": CODE, "docs": DOCS}
    return {
        keys[name]: Snapshot(
            ref=f"ref of {name}",
            state_hash=state_hash,
            sandbox_ref=f"commit of {name}",
            size_bytes=40,
            changes=(FileChange(path="a", kind=ChangeKind.ADDED),),
        )
        for name, state_hash in hashes.items()
    }


BOTH = (a_resource(CODE), a_resource(DOCS))
DRAFT = GroupDraft(
    plan=PLAN,
    moment=MOMENT,
    resources=BOTH,
    captured=captured(code="h1", docs="h2"),
    previous=None,
    created_at=NOW,
)


def built(**fields: Any) -> CheckpointGroup:
    return build_group(replace(DRAFT, **fields), ids().__next__)


def rows(group: CheckpointGroup) -> Sequence[str]:
    return [checkpoint.resource for checkpoint in group.checkpoints]


# --- which resources get a checkpoint -----------------------------------------------------------


def test_the_first_group_has_a_checkpoint_of_every_resource_and_of_the_plan() -> None:
    assert rows(built()) == ["code", "docs", "plan"]


def test_only_resources_that_changed_since_the_group_before_get_one() -> None:
    previous = a_group(
        5, resource_states=(stood_at(CODE, "h1", "ref of code"), stood_at(DOCS, "old"))
    )

    assert rows(built(previous=previous)) == ["docs", "plan"]


def test_the_same_content_under_a_newer_ref_is_no_change() -> None:
    previous = a_group(5, resource_states=(stood_at(CODE, "h1"), stood_at(DOCS, "h2")))

    assert rows(built(previous=previous)) == ["plan"]


def test_a_resource_that_the_group_before_did_not_know_gets_one() -> None:
    previous = a_group(5, resource_states=(stood_at(CODE, "h1"),))

    assert rows(built(previous=previous)) == ["docs", "plan"]


def test_a_plan_without_resources_still_has_a_checkpoint_of_its_own_state() -> None:
    group = built(resources=(), captured={})

    assert rows(group) == ["plan"]
    assert group.head == group.checkpoints[0].checkpoint_id


def test_where_each_resource_stood_is_known_although_it_did_not_change() -> None:
    previous = a_group(5, resource_states=(stood_at(CODE, "h1"), stood_at(DOCS, "h2")))
    group = built(previous=previous)

    for resource_id, name in ((CODE, "code"), (DOCS, "docs")):
        state = group.state_of(resource_id)
        assert state is not None
        assert state.snapshot == f"ref of {name}"


# --- boundaries ---------------------------------------------------------------------------------


def test_at_a_step_boundary_the_boundary_is_the_snapshot_itself() -> None:
    assert [state.boundary for state in built().resource_states] == ["ref of code", "ref of docs"]


def test_in_the_middle_of_a_step_the_boundary_is_the_one_before_that_step() -> None:
    group = built(moment=replace(MOMENT, mid_step=True))

    assert [state.boundary for state in group.resource_states] == ["boundary", "boundary"]
    assert [state.snapshot for state in group.resource_states] == ["ref of code", "ref of docs"]


@pytest.mark.parametrize(
    ("taken", "now", "expected"),
    [
        # boundary and snapshot when it was taken; the boundary now
        (("same", "same"), "same", False),
        (("same", "same"), "other", False),
        (("before", "within"), "before", True),
        (("before", "within"), "within", False),
        (("before", "within"), None, False),
    ],
)
def test_a_plan_on_a_group_has_a_step_half_done_until_its_boundary_is_another_one(
    taken: tuple[str, str], now: str | None, *, expected: bool
) -> None:
    boundary, snapshot = taken
    whole = ResourceState(resource_id=DOCS, snapshot="x", state_hash="", boundary="x")
    state = ResourceState(resource_id=CODE, snapshot=snapshot, state_hash="", boundary=boundary)
    group = a_group(1, resource_states=(whole, state))

    assert group.is_mid_step({CODE: now, DOCS: "x"}) == expected


def test_in_the_middle_of_a_step_without_a_boundary_the_snapshot_has_to_do() -> None:
    group = built(
        resources=(a_resource(CODE, boundary=None),), moment=replace(MOMENT, mid_step=True)
    )

    assert [state.boundary for state in group.resource_states] == ["ref of code"]


# --- what is written down -----------------------------------------------------------------------


def test_the_group_says_where_the_plan_stood_and_why_it_was_taken() -> None:
    group = built(moment=replace(MOMENT, labelled_by_hand=True))

    assert group.plan_id == PLAN.plan_id
    assert group.position == Position(timeline=2, seq=9)
    assert (group.decision_id, group.step_index) == (DECISION, 3)
    assert (group.reason, group.source) == (CheckpointReason.ON_TOOL_WRITE, "file.write")
    assert (group.label, group.labelled_by_hand) == ("before file.write a", True)
    assert (group.phase, group.last_completed_step, group.attempt) == ("execute", 2, 4)
    assert group.actor_state == {"next_step": 3}
    assert group.created_at == NOW
    assert group.superseded is False
    assert group.size_bytes == 80


def test_the_checkpoint_of_a_resource_is_complete() -> None:
    group = built()

    assert group.checkpoints[0] == Checkpoint(
        checkpoint_id=CheckpointId(ulid(1001)),
        group_id=group.group_id,
        plan_id=PLAN.plan_id,
        decision_id=DECISION,
        resource_id=CODE,
        resource="code",
        checkpoint_type="git-checkout",
        sandbox_ref="commit of code",
        filesystem_path=f"/sandboxes/{CODE}",
        size_bytes=40,
        created_at=NOW,
        step_index=3,
        state_hash="h1",
        label="before file.write a",
        metadata={
            "reason": "on_tool_write",
            "source": "file.write",
            "phase": "execute",
            "snapshot": "ref of code",
            "files_changed": 1,
        },
    )
    assert not group.checkpoints[0].is_plan_state


def test_the_checkpoint_of_the_plan_holds_everything_that_a_rollback_takes_back() -> None:
    group = built()
    state = {
        "phase": "execute",
        "last_completed_step": 2,
        "attempt": 4,
        "timeline": 2,
        "actor_state": {"next_step": 3},
    }

    assert group.checkpoints[-1] == Checkpoint(
        checkpoint_id=group.head,
        group_id=group.group_id,
        plan_id=PLAN.plan_id,
        decision_id=DECISION,
        resource_id=None,
        resource="plan",
        checkpoint_type="plan-state",
        sandbox_ref="",
        filesystem_path="",
        size_bytes=0,
        created_at=NOW,
        step_index=3,
        state_hash=hash_of(state),
        label="before file.write a",
        metadata={
            "reason": "on_tool_write",
            "source": "file.write",
            "phase": "execute",
            "plan_state": state,
        },
    )
    assert group.checkpoints[-1].is_plan_state


def test_the_hash_of_a_group_is_made_of_those_of_its_parts() -> None:
    """It is stored, so that another version must come to the same one."""
    group = built()
    parts = [[CODE, "h1"], [DOCS, "h2"], ["plan", group.checkpoints[-1].state_hash]]
    text = json.dumps(parts, separators=(",", ":"))

    assert group.state_hash == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert hash_of({"b": "ü", "a": 1}) == hash_of({"a": 1, "b": "ü"})
    spelled = b'{"a":"\\u00fc"}'
    assert hash_of({"a": "ü"}) == f"sha256:{hashlib.sha256(spelled).hexdigest()}"


def test_what_takes_back_a_group_is_named_in_it() -> None:
    undo = GroupId(ulid(80))
    group = built(moment=replace(MOMENT, undo_group=undo))

    assert [item.metadata["undo"] for item in group.checkpoints] == [undo] * 3


def test_what_was_not_captured_or_was_unusual_is_named() -> None:
    snapshot = replace(captured(code="h")[CODE], skipped=("a.sock",), notes=("odd",))
    resource = a_resource(CODE, exclude=("target/",))

    metadata = built(resources=(resource,), captured={CODE: snapshot}).checkpoints[0].metadata

    assert metadata["excluded"] == ["target/"]
    assert metadata["skipped"] == ["a.sock"]
    assert metadata["notes"] == ["odd"]


def test_what_was_unusual_where_nothing_changed_and_what_an_actor_forgets_is_the_groups() -> None:
    notes = {key: replace(s, notes=("odd",)) for key, s in captured(code="h1", docs="h2").items()}
    before = built(captured=captured(code="h1", docs="other"))
    forgetful = replace(PLAN, actor_state={"not_remembered": ["a.db"]})

    group = built(captured=notes, previous=before, plan=forgetful)

    assert group.checkpoints[-1].metadata["notes"] == [
        "code: odd",
        "of what the agent remembers this was too large: a.db",
    ]
    assert "notes" not in built().checkpoints[-1].metadata


def test_what_a_way_back_in_place_spares_is_on_record_with_it() -> None:
    spares = SparedSince(group=GroupId(ulid(81)), keep=True)

    (metadata, *_) = (
        item.metadata for item in built(moment=replace(MOMENT, spares=spares)).checkpoints
    )

    assert (metadata["since"], metadata["keep"]) == (spares.group, True)


def test_what_was_captured_without_a_group_is_counted_with_the_next_one() -> None:
    group = built(resources=(a_resource(CODE, uncounted=7), BOTH[1]))

    assert [item.size_bytes for item in group.checkpoints] == [47, 40, 0]


def test_a_group_and_the_state_of_its_plan_have_one_id_and_each_resource_its_own() -> None:
    group = built()

    assert (group.head, group.checkpoints[-1].checkpoint_id) == (group.group_id, group.group_id)
    assert len(group.names()) == len(group.checkpoints) == 3
    assert group.names() == {item.checkpoint_id for item in group.checkpoints}
    assert group.state_of(DECISION) is None  # pyright: ignore[reportArgumentType]


# --- hashes -------------------------------------------------------------------------------------


def test_the_same_state_always_has_the_same_hash_whenever_and_wherever_it_is_taken() -> None:
    other_words = replace(MOMENT, label="x", source="y", step_index=8)

    assert built().state_hash == built(created_at=LATER, moment=other_words).state_hash
    assert built().state_hash.startswith("sha256:")


SENSITIVE: dict[str, Callable[[], CheckpointGroup]] = {
    "a resource's content": lambda: built(captured=captured(code="h1", docs="other")),
    "which resource has it": lambda: built(captured=captured(code="h2", docs="h1")),
    "a missing resource": lambda: built(resources=BOTH[:1]),
    "the phase": lambda: built(plan=replace(PLAN, phase=Phase.APPLY)),
    "the last step": lambda: built(plan=replace(PLAN, last_completed_step=1)),
    "the attempt": lambda: built(plan=replace(PLAN, attempt=5)),
    "the timeline": lambda: built(plan=replace(PLAN, timeline=3)),
    "the actor's memory": lambda: built(plan=replace(PLAN, actor_state={"next_step": 4})),
}


@pytest.mark.parametrize("part", SENSITIVE)
def test_the_hash_of_a_group_changes_with_each_part_of_the_state(part: str) -> None:
    assert SENSITIVE[part]().state_hash != built().state_hash


def test_the_spelling_of_a_value_does_not_change_its_hash() -> None:
    assert hash_of({"a": 1, "ü": [2]}) == hash_of({"ü": [2], "a": 1})
    assert hash_of({"a": 1}) != hash_of({"a": "1"})


# --- whether a group is exactly what is there -----------------------------------------------------


def test_a_group_holds_the_plan_and_the_files_it_was_just_made_of() -> None:
    assert holds(built(), PLAN, DRAFT.captured)


def test_the_same_files_under_newer_refs_are_the_same() -> None:
    newer = {key: replace(item, ref="newer") for key, item in DRAFT.captured.items()}
    assert holds(built(), PLAN, newer)


@pytest.mark.parametrize(
    "change",
    [
        {"seq": 10},
        {"timeline": 3},
        {"last_completed_step": 3},
        {"attempt": 5},
        {"actor_state": {"next_step": 4}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_plan_that_went_on_is_another_state(change: dict[str, Any]) -> None:
    assert not holds(built(), replace(PLAN, **change), DRAFT.captured)


def test_another_file_is_another_state() -> None:
    assert not holds(built(), PLAN, captured(code="h1", docs="other"))


def test_one_that_was_taken_in_the_middle_of_a_step_is_no_end() -> None:
    resources = (a_resource(CODE, boundary="before"), a_resource(DOCS, boundary="before"))
    middle = built(moment=replace(MOMENT, mid_step=True), resources=resources)
    assert not holds(middle, PLAN, DRAFT.captured)
