"""Checkpoints, their groups, and the names of the moments at which they are taken."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from cleveragents.domain.changes import FileChange
from cleveragents.domain.decision import Position
from cleveragents.domain.effects import EffectReport
from cleveragents.domain.footprint import NOTHING, Footprint
from cleveragents.domain.ids import CheckpointId, DecisionId, GroupId, PlanId, ResourceId


class Trigger(StrEnum):
    """The moments a user may switch on and off, in the order of the reference."""

    ON_TOOL_WRITE = "on_tool_write"
    ON_TOOL_WRITE_COMPLETE = "on_tool_write_complete"
    ON_SUBPLAN_SPAWN = "on_subplan_spawn"
    ON_ERROR = "on_error"
    BEFORE_STEP = "before_step"
    AFTER_STEP = "after_step"
    AFTER_SUBPLAN = "after_subplan"
    BEFORE_APPLY = "before_apply"


DEFAULT_TRIGGERS = (
    Trigger.ON_TOOL_WRITE,
    Trigger.ON_TOOL_WRITE_COMPLETE,
    Trigger.ON_SUBPLAN_SPAWN,
    Trigger.ON_ERROR,
)
TRIGGER_ALIASES = {
    "before_tool_execute": Trigger.ON_TOOL_WRITE,
    "after_tool_execute": Trigger.ON_TOOL_WRITE_COMPLETE,
}


class CheckpointReason(StrEnum):
    """Why a group exists: a decision, a trigger, a person, the end, or a rollback to be undone."""

    DECISION = "decision"
    COMPLETE = "complete"
    MANUAL = "manual"
    BEFORE_ROLLBACK = "before_rollback"
    FILES_RESTORED = "files_restored"
    ON_TOOL_WRITE = "on_tool_write"
    ON_TOOL_WRITE_COMPLETE = "on_tool_write_complete"
    ON_SUBPLAN_SPAWN = "on_subplan_spawn"
    ON_ERROR = "on_error"
    BEFORE_STEP = "before_step"
    AFTER_STEP = "after_step"
    AFTER_SUBPLAN = "after_subplan"
    BEFORE_APPLY = "before_apply"


PLAN_STATE = "plan-state"
"""The `checkpoint_type` of a plan's own state; every group has exactly one of these."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """The captured state of one sandbox. `ref` is opaque: only the store that made it can read it.

    `changes`, `footprint` and `size_bytes` are relative to the snapshot before; an unchanged
    sandbox gives the same `ref` again, with no changes and no bytes. `notes` tell people what was
    unusual about it.
    """

    ref: str
    state_hash: str
    sandbox_ref: str
    size_bytes: int = 0
    changes: tuple[FileChange, ...] = ()
    footprint: Footprint = NOTHING
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class ResourceState(Struct, frozen=True, kw_only=True):
    """Where one resource stood when a group was taken.

    `boundary` is the snapshot of the last step boundary; it differs from `snapshot` only where a
    group was taken in the middle of a step, and is what a resume goes back to.
    """

    resource_id: ResourceId
    snapshot: str
    state_hash: str
    boundary: str


class Checkpoint(Struct, frozen=True, kw_only=True):
    checkpoint_id: CheckpointId
    group_id: GroupId
    plan_id: PlanId
    decision_id: DecisionId | None
    resource_id: ResourceId | None
    resource: str
    checkpoint_type: str
    sandbox_ref: str
    filesystem_path: str
    size_bytes: int
    created_at: datetime
    step_index: int
    state_hash: str
    label: str
    metadata: Mapping[str, Any]

    @property
    def is_plan_state(self) -> bool:
        return self.checkpoint_type == PLAN_STATE


class CheckpointGroup(Struct, frozen=True, kw_only=True):
    """Everything taken at one moment, and where the plan itself stood then."""

    group_id: GroupId
    plan_id: PlanId
    position: Position
    decision_id: DecisionId | None
    step_index: int
    reason: CheckpointReason
    source: str
    phase: str
    label: str
    labelled_by_hand: bool
    state_hash: str
    created_at: datetime
    last_completed_step: int
    attempt: int
    actor_state: Mapping[str, Any]
    superseded: bool
    checkpoints: tuple[Checkpoint, ...]
    resource_states: tuple[ResourceState, ...]

    @property
    def head(self) -> CheckpointId:
        """The checkpoint that stands for the whole group, and has its id: the plan's own state."""
        return CheckpointId(self.group_id)

    @property
    def plan_hash(self) -> str:
        """That of the plan's own state alone."""
        return next(item.state_hash for item in self.checkpoints if item.is_plan_state)

    @property
    def size_bytes(self) -> int:
        return sum(item.size_bytes for item in self.checkpoints)

    @property
    def counted(self) -> frozenset[ResourceId]:
        """The resources that it has a checkpoint of, with all the bytes that they have cost."""
        return frozenset(c.resource_id for c in self.checkpoints if c.resource_id is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was unusual when it was taken, each with the resource that it is about."""
        return tuple(
            note if item.is_plan_state else f"{item.resource}: {note}"
            for item in self.checkpoints
            for note in item.metadata.get("notes", ())
        )

    def names(self) -> frozenset[str]:
        return frozenset((self.group_id, *(item.checkpoint_id for item in self.checkpoints)))

    @property
    def spares(self) -> "SparedSince | None":
        """What a safety group in place has noted."""
        told = next((item.metadata for item in self.checkpoints if "since" in item.metadata), None)
        if told is None:
            return None
        return SparedSince(group=GroupId(told["since"]), keep=bool(told["keep"]))

    def state_of(self, resource_id: ResourceId) -> ResourceState | None:
        return next((s for s in self.resource_states if s.resource_id == resource_id), None)

    def is_mid_step(self, boundaries: Mapping[ResourceId, str | None]) -> bool:
        """Whether a plan that stands here, with these boundaries, has a step half done.

        Once that step was undone, a boundary is another one than was captured here.
        """
        return any(
            state.boundary != state.snapshot and boundaries.get(state.resource_id) == state.boundary
            for state in self.resource_states
        )


class PrunedCheckpoint(Struct, frozen=True, kw_only=True):
    """What is remembered of a group that is gone."""

    group_id: GroupId
    reason: str
    pruned_at: datetime


class RevertedFile(Struct, frozen=True, kw_only=True):
    """`action` is `restored` (its content is that of the checkpoint) or `removed`."""

    file: str
    action: str


class RollbackImpact(Struct, frozen=True, kw_only=True):
    """What a rollback would do, or did. `only` names the files it was limited to; `notes` are for
    people. In place, `others` is what was changed by others since the last group, and `left` what
    stays as it is."""

    plan_id: PlanId
    group: CheckpointGroup
    reverted: tuple[RevertedFile, ...]
    child_plans_invalidated: int
    decisions_discarded: int
    tool_calls_undone: int
    phase: str
    state: str
    checkpoints_remaining: int
    only: tuple[str, ...] = ()
    effects: EffectReport = EffectReport()
    excluded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    in_place: bool = False


class RollbackPreview(RollbackImpact, frozen=True, kw_only=True):
    """Nothing was done. `finishes_first` is the target of a rollback that was cut off."""

    undoes_step: bool = False
    finishes_first: GroupId | None = None


class RollbackResult(RollbackImpact, frozen=True, kw_only=True):
    """It is done; `undo_group` is the checkpoint that takes it back."""

    undo_group: CheckpointGroup


class SparedSince(Struct, frozen=True, kw_only=True):
    """Of a safety group in place: the group before it, and whether what was changed since then is
    kept."""

    group: GroupId
    keep: bool = False


class CheckpointMoment(Struct, frozen=True, kw_only=True):
    """What a caller says about a group that is to be recorded.

    `rollback_target` makes it the safety group of a rollback: the intent is stored with it.
    `undo_group` is the one that takes back what this one records. `needs` are others that must
    not be pruned for it.
    """

    reason: CheckpointReason
    source: str
    label: str
    decision_id: DecisionId | None
    step_index: int
    mid_step: bool = False
    labelled_by_hand: bool = False
    rollback_target: GroupId | None = None
    rollback_only: tuple[str, ...] = ()
    undo_group: GroupId | None = None
    spares: "SparedSince | None" = None
    needs: tuple[GroupId, ...] = ()
