"""Owns how checkpoints and rollbacks look."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.cli.render.blocks import Cell, Fields, Grid, Outcome
from cleveragents.cli.views.words import clock_time, count, size, stamp, toned
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import Checkpoint, CheckpointGroup, RollbackResult
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.ids import GroupId, PlanId
from cleveragents.domain.plan import Plan


def listed(plan: Plan, groups: Sequence[CheckpointGroup]) -> Outcome:
    return Outcome(
        data={
            "plan_id": plan.plan_id,
            "last_checkpoint_id": plan.head,
            "checkpoints": [
                _row(group, checkpoint) for group in groups for checkpoint in group.checkpoints
            ],
        },
        blocks=[
            Grid(
                "Checkpoints",
                ["", "group", "step", "label", "changed", "size"],
                [_group_cells(plan, group) for group in groups],
                empty="no checkpoints yet: agents plan execute makes them",
            )
        ],
        messages=[f"● is where the plan stands; {count(len(groups), 'checkpoint')} in all"]
        if groups
        else [],
    )


def _group_cells(plan: Plan, group: CheckpointGroup) -> Sequence[str | Cell]:
    changed = [item.resource for item in group.checkpoints if not item.is_plan_state]
    here = plan.head in group.names()
    cells: list[str | Cell] = [
        Cell("●", "good") if here else "",
        group.group_id,
        str(group.step_index),
        group.label,
        ", ".join(changed) or "-",
        size(group.size_bytes),
    ]
    if not group.superseded:
        return cells
    return [Cell(cell, "dim") if isinstance(cell, str) else cell for cell in cells]


def _row(group: CheckpointGroup, checkpoint: Checkpoint) -> Mapping[str, Any]:
    return {
        "checkpoint_id": checkpoint.checkpoint_id,
        "group_id": group.group_id,
        "resource": checkpoint.resource,
        "checkpoint_type": checkpoint.checkpoint_type,
        "label": checkpoint.label,
        "step_index": checkpoint.step_index,
        "decision_id": checkpoint.decision_id,
        "state_hash": checkpoint.state_hash,
        "size_bytes": checkpoint.size_bytes,
        "created_at": stamp(checkpoint.created_at),
        "reason": group.reason,
        "source": group.source,
    }


def shown(group: CheckpointGroup) -> Outcome:
    return Outcome(
        data={
            "group_id": group.group_id,
            "plan_id": group.plan_id,
            "label": group.label,
            "reason": group.reason,
            "source": group.source,
            "phase": group.phase,
            "step_index": group.step_index,
            "last_completed_step": group.last_completed_step,
            "decision_id": group.decision_id,
            "state_hash": group.state_hash,
            "created_at": stamp(group.created_at),
            "superseded": group.superseded,
            "checkpoints": [
                {
                    **_row(group, item),
                    "plan_id": item.plan_id,
                    "resource_id": item.resource_id,
                    "sandbox_ref": item.sandbox_ref,
                    "filesystem_path": item.filesystem_path,
                    "metadata": dict(item.metadata),
                }
                for item in group.checkpoints
            ],
        },
        blocks=[_group_fields(group), _checkpoint_grid(group)],
        messages=[f"go back to it: agents plan rollback {group.plan_id} {group.group_id}"],
    )


def _group_fields(group: CheckpointGroup) -> Fields:
    return Fields(
        "Checkpoint group",
        [
            ("group", Cell(group.group_id, "accent")),
            ("label", group.label),
            ("reason", group.reason),
            ("source", group.source),
            ("step", str(group.step_index)),
            ("decision", group.decision_id or "-"),
            ("state hash", group.state_hash),
            ("created", clock_time(group.created_at)),
            ("superseded", "yes" if group.superseded else "no"),
        ],
    )


def _checkpoint_grid(group: CheckpointGroup) -> Grid:
    return Grid(
        "Checkpoints",
        ["checkpoint", "resource", "type", "size", "state hash"],
        [
            [
                item.checkpoint_id,
                item.resource,
                item.checkpoint_type,
                size(item.size_bytes),
                item.state_hash,
            ]
            for item in group.checkpoints
        ],
    )


def created(group: CheckpointGroup) -> Outcome:
    outcome = shown(group)
    return Outcome(
        data=outcome.data,
        blocks=[_group_fields(group)],
        messages=[f"checkpoint {group.label!r} created"],
    )


def deleted(group: CheckpointGroup, freed: int) -> Outcome:
    return Outcome(
        data={"plan_id": group.plan_id, "group_id": group.group_id, "freed_bytes": freed},
        messages=[f"checkpoint {group.group_id} ({group.label}) deleted, {size(freed)} freed"],
    )


def verified(
    plan_id: PlanId, groups: Sequence[CheckpointGroup], damages: Mapping[GroupId, str]
) -> Outcome:
    whole = [group.group_id for group in groups if group.group_id not in damages]
    data = {
        "plan_id": plan_id,
        "verified": whole,
        "damaged": [{"group_id": key, "reason": reason} for key, reason in damages.items()],
    }
    if not damages:
        done = f"{count(len(whole), 'checkpoint')} verified: all of it can be restored"
        return Outcome(data=data, messages=[done])
    error = {
        "code": SnapshotDamagedError.code,
        "message": f"{len(damages)} of {len(groups)} checkpoints cannot be restored",
        "hint": f"delete them with `agents plan checkpoint delete {plan_id} <CHECKPOINT_ID>`",
    }
    return Outcome(
        data={**data, "error": error},
        blocks=[Grid("Damaged", ["group", "reason"], list(damages.items()))],
        messages=[error["message"], error["hint"]],
        status="error",
        exit_code=1,
    )


def compared(
    old: CheckpointGroup, new: CheckpointGroup, changes: Sequence[tuple[str, FileChange]]
) -> Outcome:
    return Outcome(
        data={
            "from": old.group_id,
            "to": new.group_id,
            "files": [
                {"resource": name, "path": change.path, "status": change.kind}
                for name, change in changes
            ],
        },
        blocks=[
            Grid(
                f"From {old.label} to {new.label}",
                ["resource", "file", "status"],
                [[name, change.path, toned(change.kind)] for name, change in changes],
                empty="nothing differs",
            )
        ],
    )


def rolled_back(result: RollbackResult) -> Outcome:
    data = _rollback_data(result)
    impact, state = data["impact"], data["post_rollback_state"]
    return Outcome(
        data=data,
        blocks=[
            Fields(
                "Rollback Summary",
                [
                    ("plan", Cell(result.plan_id, "accent")),
                    ("checkpoint", result.checkpoint_id),
                    ("label", result.group.label),
                    ("files reverted", str(len(result.reverted))),
                ],
            ),
            Grid(
                "Changes Reverted",
                ["file", "action"],
                [[item.file, toned(item.action)] for item in result.reverted],
                empty="no file differed",
            ),
            Fields("Impact", [(key.replace("_", " "), str(impact[key])) for key in impact]),
            Fields("Post-Rollback State", [(k.replace("_", " "), str(state[k])) for k in state]),
        ],
        messages=[
            "Rollback complete",
            f"undo it: agents plan rollback {result.plan_id} {result.undo_group.group_id}",
        ],
        warnings=_rollback_warnings(result),
    )


def _rollback_data(result: RollbackResult) -> dict[str, Any]:
    return {
        "rollback_summary": {
            "plan": result.plan_id,
            "checkpoint": result.checkpoint_id,
            "label": result.group.label,
            "files_reverted": len(result.reverted),
        },
        "changes_reverted": [{"file": i.file, "action": i.action} for i in result.reverted],
        "impact": {
            "child_plans_invalidated": result.child_plans_invalidated,
            "sandbox": f"restored to {result.checkpoint_id}",
            "decisions_after_cp": f"{result.decisions_discarded} discarded",
            "tool_calls_after_cp": f"{result.tool_calls_undone} undone",
        },
        "post_rollback_state": {
            "phase": result.phase,
            "state": f"{result.state} (awaiting input)",
            "checkpoints_remaining": result.checkpoints_remaining,
        },
    }


def _rollback_warnings(result: RollbackResult) -> Sequence[str]:
    warnings = list(result.effects.sentences())
    if result.excluded:
        warnings.append(f"left in place, as `exclude` says: {', '.join(result.excluded)}")
    return warnings
