"""From values of the domain to the records that callers get."""

from collections.abc import Sequence

from cleveragents.application.services.checkpoints.pruning import Explained
from cleveragents.checkpoints.records import (
    CheckpointDetails,
    CheckpointList,
    CheckpointRow,
    PruneReport,
    ResourceCheckpoint,
    RestoredFile,
    RetentionRow,
    RollbackReport,
)
from cleveragents.domain.checkpoint import Checkpoint, CheckpointGroup, RollbackResult
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.retention import GroupOutline


def listed(plan: Plan, groups: Sequence[CheckpointGroup]) -> CheckpointList:
    return CheckpointList(
        plan_id=str(plan.plan_id),
        last_checkpoint_id=_text(plan.head),
        states=len({group.state_hash for group in groups}),
        checkpoints=tuple(_row(group, item) for group in groups for item in group.checkpoints),
    )


def detailed(group: CheckpointGroup) -> CheckpointDetails:
    return CheckpointDetails(
        group_id=str(group.group_id),
        plan_id=str(group.plan_id),
        label=group.label,
        reason=group.reason.value,
        source=group.source,
        phase=str(group.phase),
        step_index=group.step_index,
        last_completed_step=group.last_completed_step,
        decision_id=_text(group.decision_id),
        state_hash=group.state_hash,
        created_at=group.created_at,
        superseded=group.superseded,
        checkpoints=tuple(_whole(group, item) for item in group.checkpoints),
    )


def rolled_back(result: RollbackResult) -> RollbackReport:
    return RollbackReport(
        plan_id=str(result.plan_id),
        checkpoint=str(result.group.group_id),
        label=result.group.label,
        files_reverted=len(result.reverted),
        changes_reverted=tuple(
            RestoredFile(file=item.file, action=item.action) for item in result.reverted
        ),
        child_plans_invalidated=result.child_plans_invalidated,
        decisions_discarded=result.decisions_discarded,
        tool_calls_undone=result.tool_calls_undone,
        phase=str(result.phase),
        state=str(result.state),
        checkpoints_remaining=result.checkpoints_remaining,
        undo_checkpoint_id=str(result.undo_group.group_id),
        only=result.only,
        effects=tuple(result.effects.sentences()),
        excluded=result.excluded,
        notes=result.notes,
    )


def pruned(plan_id: PlanId, found: Explained, freed: int | None) -> PruneReport:
    """`freed` None: only looked at."""
    gone, kept = found.decision.removed, found.decision.kept
    return PruneReport(
        plan_id=str(plan_id),
        dry_run=freed is None,
        kept=tuple(_retention(g, kept[g.group_id]) for g in found.groups if g.group_id not in gone),
        removed=tuple(_retention(g, gone[g.group_id]) for g in found.groups if g.group_id in gone),
        freed_bytes=freed or 0,
    )


def _retention(group: GroupOutline, reason: str) -> RetentionRow:
    return RetentionRow(
        group_id=str(group.group_id),
        label=group.label,
        size_bytes=group.size_bytes,
        created_at=group.created_at,
        reason=reason,
    )


def _row(group: CheckpointGroup, item: Checkpoint) -> CheckpointRow:
    return CheckpointRow(
        checkpoint_id=str(item.checkpoint_id),
        group_id=str(group.group_id),
        resource=item.resource,
        checkpoint_type=str(item.checkpoint_type),
        label=item.label,
        step_index=item.step_index,
        decision_id=_text(item.decision_id),
        state_hash=item.state_hash,
        size_bytes=item.size_bytes,
        created_at=item.created_at,
        reason=group.reason.value,
        source=group.source,
    )


def _whole(group: CheckpointGroup, item: Checkpoint) -> ResourceCheckpoint:
    row = _row(group, item)
    return ResourceCheckpoint(
        **{name: getattr(row, name) for name in row.__struct_fields__},
        plan_id=str(item.plan_id),
        resource_id=_text(item.resource_id),
        sandbox_ref=item.sandbox_ref,
        filesystem_path=item.filesystem_path,
    )


def _text(value: str | None) -> str | None:
    return None if value is None else str(value)
