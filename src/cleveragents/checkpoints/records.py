"""What a call gives back: frozen records with the names that the commands' JSON has.

Fields are only ever added. Every value is plain: text, numbers, times in UTC, tuples of records.
"""

from datetime import datetime

from msgspec import Struct


class CheckpointRow(Struct, frozen=True, kw_only=True):
    """The state of one resource, or of the plan itself, at one moment.

    Those of one moment have the `group_id` in common, which is what one goes back to. `step_index`
    counts from 0.
    """

    checkpoint_id: str
    group_id: str
    resource: str
    checkpoint_type: str
    label: str
    step_index: int
    decision_id: str | None
    state_hash: str
    size_bytes: int
    created_at: datetime
    reason: str
    source: str


class CheckpointList(Struct, frozen=True, kw_only=True):
    """`checkpoints` are all of the plan, the oldest first; `states` counts those that differ."""

    plan_id: str
    last_checkpoint_id: str | None
    states: int
    checkpoints: tuple[CheckpointRow, ...]


class ResourceCheckpoint(CheckpointRow, frozen=True, kw_only=True):
    """A row with where its resource is, and what its snapshot is called there."""

    plan_id: str
    resource_id: str | None
    sandbox_ref: str
    filesystem_path: str


class CheckpointDetails(Struct, frozen=True, kw_only=True):
    """One moment of a plan, and everything that was kept of it.

    `superseded`: a later rollback or correction took it back; one can still go there.
    """

    group_id: str
    plan_id: str
    label: str
    reason: str
    source: str
    phase: str
    step_index: int
    last_completed_step: int
    decision_id: str | None
    state_hash: str
    created_at: datetime
    superseded: bool
    checkpoints: tuple[ResourceCheckpoint, ...]


class RestoredFile(Struct, frozen=True, kw_only=True):
    """`action` is `restored` (its content is that of the checkpoint) or `removed`."""

    file: str
    action: str


class RollbackReport(Struct, frozen=True, kw_only=True):
    """What a rollback did; going back to `undo_checkpoint_id` takes it back.

    `effects` says what became of effects outside of the sandboxes, `excluded` names what the action
    leaves in place, and `notes` are for people.
    """

    plan_id: str
    checkpoint: str
    label: str
    files_reverted: int
    changes_reverted: tuple[RestoredFile, ...]
    child_plans_invalidated: int
    decisions_discarded: int
    tool_calls_undone: int
    phase: str
    state: str
    checkpoints_remaining: int
    undo_checkpoint_id: str
    only: tuple[str, ...]
    effects: tuple[str, ...]
    excluded: tuple[str, ...]
    notes: tuple[str, ...]


class RetentionRow(Struct, frozen=True, kw_only=True):
    """One checkpoint group, and the `reason` for which it goes or stays."""

    group_id: str
    label: str
    size_bytes: int
    created_at: datetime
    reason: str


class PruneReport(Struct, frozen=True, kw_only=True):
    """What the rule of retention says of each group; with `dry_run` nothing went."""

    plan_id: str
    dry_run: bool
    kept: tuple[RetentionRow, ...]
    removed: tuple[RetentionRow, ...]
    freed_bytes: int
