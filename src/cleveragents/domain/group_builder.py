"""How a checkpoint group is put together, complete before it is stored."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from cleveragents.domain.actor_protocol import caveats
from cleveragents.domain.checkpoint import (
    PLAN_STATE,
    Checkpoint,
    CheckpointGroup,
    CheckpointMoment,
    ResourceState,
    Snapshot,
)
from cleveragents.domain.ids import CheckpointId, GroupId, ResourceId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource


class GroupDraft(Struct, frozen=True, kw_only=True):
    """Everything a group is made of; `previous` is the group the plan stood on until now."""

    plan: Plan
    moment: CheckpointMoment
    resources: Sequence[PlanResource]
    captured: Mapping[ResourceId, Snapshot]
    previous: CheckpointGroup | None
    created_at: datetime


def build_group(draft: GroupDraft, new_id: Callable[[], str]) -> CheckpointGroup:
    plan, moment = draft.plan, draft.moment
    group_id = GroupId(new_id())
    states = tuple(_resource_state(draft, resource) for resource in draft.resources)
    checkpoints = [
        _resource_checkpoint(draft, resource, group_id, CheckpointId(new_id()))
        for resource in draft.resources
        if _is_modified(draft, resource)
    ]
    checkpoints.append(_plan_checkpoint(draft, group_id))
    return CheckpointGroup(
        group_id=group_id,
        plan_id=plan.plan_id,
        position=plan.here,
        decision_id=moment.decision_id,
        step_index=moment.step_index,
        reason=moment.reason,
        source=moment.source,
        phase=plan.phase,
        label=moment.label,
        labelled_by_hand=moment.labelled_by_hand,
        state_hash=hash_of(
            [[s.resource_id, s.state_hash] for s in states] + [["plan", checkpoints[-1].state_hash]]
        ),
        created_at=draft.created_at,
        last_completed_step=plan.last_completed_step,
        attempt=plan.attempt,
        actor_state=plan.actor_state,
        superseded=False,
        checkpoints=tuple(checkpoints),
        resource_states=states,
    )


def holds(group: CheckpointGroup, plan: Plan, captured: Mapping[ResourceId, Snapshot]) -> bool:
    """Whether going back to the group would change nothing: no file, nothing that the plan or its
    actor knows, and nothing that happened, for nothing did since."""
    files = {state.resource_id: state.state_hash for state in group.resource_states}
    at_boundary = all(state.boundary == state.snapshot for state in group.resource_states)
    return (
        group.position == plan.here
        and at_boundary
        and files == {key: snapshot.state_hash for key, snapshot in captured.items()}
        and group.plan_hash == hash_of(plan_state(plan))
    )


def plan_state(plan: Plan) -> Mapping[str, Any]:
    """The part of a plan that a rollback takes back, the actor's own memory included."""
    return {
        "phase": plan.phase,
        "last_completed_step": plan.last_completed_step,
        "attempt": plan.attempt,
        "timeline": plan.timeline,
        "actor_state": plan.actor_state,
    }


def hash_of(value: Mapping[str, Any] | Iterable[Any]) -> str:
    """The hash of a JSON value in one canonical spelling."""
    import hashlib  # noqa: PLC0415 - what only reads plans does not load OpenSSL
    import json  # noqa: PLC0415 - nor this

    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def _resource_state(draft: GroupDraft, resource: PlanResource) -> ResourceState:
    snapshot = draft.captured[resource.resource_id]
    boundary = resource.boundary if draft.moment.mid_step else snapshot.ref
    return ResourceState(
        resource_id=resource.resource_id,
        snapshot=snapshot.ref,
        state_hash=snapshot.state_hash,
        boundary=boundary or snapshot.ref,
    )


def _is_modified(draft: GroupDraft, resource: PlanResource) -> bool:
    before = draft.previous.state_of(resource.resource_id) if draft.previous else None
    # By hash, not by ref: after a rollback the same content has a newer ref.
    return before is None or before.state_hash != draft.captured[resource.resource_id].state_hash


def _resource_checkpoint(
    draft: GroupDraft, resource: PlanResource, group_id: GroupId, checkpoint_id: CheckpointId
) -> Checkpoint:
    snapshot = draft.captured[resource.resource_id]
    extra: dict[str, Any] = {"snapshot": snapshot.ref, "files_changed": len(snapshot.changes)}
    if resource.exclude:
        extra["excluded"] = list(resource.exclude)
    if snapshot.skipped:
        extra["skipped"] = list(snapshot.skipped)
    if snapshot.notes:
        extra["notes"] = list(snapshot.notes)
    return Checkpoint(
        checkpoint_id=checkpoint_id,
        group_id=group_id,
        plan_id=draft.plan.plan_id,
        decision_id=draft.moment.decision_id,
        resource_id=resource.resource_id,
        resource=resource.name,
        checkpoint_type=resource.type,
        sandbox_ref=snapshot.sandbox_ref,
        filesystem_path=resource.sandbox_path,
        # Also of what was captured at a step boundary for which there is no group.
        size_bytes=snapshot.size_bytes + resource.uncounted,
        created_at=draft.created_at,
        step_index=draft.moment.step_index,
        state_hash=snapshot.state_hash,
        label=draft.moment.label,
        metadata=_metadata(draft, extra),
    )


def _plan_checkpoint(draft: GroupDraft, group_id: GroupId) -> Checkpoint:
    """It stands for the whole group, and so the two have one id (ADR 0079)."""
    state = plan_state(draft.plan)
    return Checkpoint(
        checkpoint_id=CheckpointId(group_id),
        group_id=group_id,
        plan_id=draft.plan.plan_id,
        decision_id=draft.moment.decision_id,
        resource_id=None,
        resource="plan",
        checkpoint_type=PLAN_STATE,
        sandbox_ref="",
        filesystem_path="",
        size_bytes=0,
        created_at=draft.created_at,
        step_index=draft.moment.step_index,
        state_hash=hash_of(state),
        label=draft.moment.label,
        metadata=_metadata(draft, {"plan_state": dict(state), **_notes(draft)}),
    )


def _notes(draft: GroupDraft) -> Mapping[str, Any]:
    """What was unusual about resources that have no checkpoint of their own in the group, and
    about what the actor remembers."""
    quiet = [resource for resource in draft.resources if not _is_modified(draft, resource)]
    found = [
        f"{resource.name}: {note}"
        for resource in quiet
        for note in draft.captured[resource.resource_id].notes
    ]
    found += caveats(draft.plan.action, draft.plan.actor_state)
    return {"notes": found} if found else {}


def _metadata(draft: GroupDraft, extra: Mapping[str, Any]) -> Mapping[str, Any]:
    moment = draft.moment
    undo = {} if moment.undo_group is None else {"undo": moment.undo_group}
    whole = moment.rollback_target is not None and not moment.rollback_only
    target = {"target": moment.rollback_target} if whole else {}
    spares = moment.spares
    spared = {} if spares is None else {"since": spares.group, "keep": spares.keep}
    return {
        "reason": moment.reason,
        "source": moment.source,
        "phase": draft.plan.phase,
        **undo,
        **target,
        **spared,
        **extra,
    }
