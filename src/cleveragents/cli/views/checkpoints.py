"""How checkpoints look."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cleveragents.application.services.checkpoints.pruning import Explained
from cleveragents.cli.render.blocks import Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.words import clock_time, count, picked, short_hash, size, toned
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import Checkpoint, CheckpointGroup
from cleveragents.domain.ids import GroupId, PlanId
from cleveragents.domain.retention import GroupOutline

if TYPE_CHECKING:
    from cleveragents.application.services.plans.plan_queries import PlanTimeline


def listed(found: "PlanTimeline", *, unfolded: bool = False) -> CommandResult:
    """Groups that hold the same state count once for retention, so that both numbers are told."""
    from cleveragents.cli.views.timelines import (  # noqa: PLC0415 - this one alone
        timeline_grid,
        what_to_type,
    )

    plan, groups = found.plan, found.groups
    told: list[str] = []
    applied: dict[str, Any] = {}
    if found.applied is not None:
        from cleveragents.cli.views import applied_changes  # noqa: PLC0415 - this one alone

        told = applied_changes.sentences(found.applied, found.now)
        applied = {"apply": applied_changes.kept(found.applied, found.now)}
    return CommandResult(
        data={
            **picked(plan, "plan_id name"),
            "last_checkpoint_id": plan.head,
            "states": len({group.state_hash for group in groups}),
            "checkpoints": [
                _row(group, checkpoint) for group in groups for checkpoint in group.checkpoints
            ],
            **applied,
        },
        blocks=[timeline_grid(found, unfolded=unfolded)],
        messages=[
            *told,
            *(what_to_type(found, unfolded=unfolded) if groups else ()),
        ],
    )


def _row(group: CheckpointGroup, checkpoint: Checkpoint) -> Mapping[str, Any]:
    return {
        "checkpoint_id": checkpoint.checkpoint_id,
        "group_id": group.group_id,
        **picked(
            checkpoint,
            "resource checkpoint_type label step_index decision_id state_hash size_bytes "
            "created_at",
        ),
        "reason": group.reason,
        "source": group.source,
    }


def shown(group: CheckpointGroup) -> CommandResult:
    return CommandResult(
        data={
            **picked(
                group,
                "group_id plan_id label reason source phase step_index last_completed_step "
                "decision_id state_hash created_at superseded",
            ),
            "checkpoints": [
                {
                    **_row(group, item),
                    **picked(item, "plan_id resource_id sandbox_ref filesystem_path metadata"),
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
            ("step", str(group.last_completed_step + 1)),
            ("decision", group.decision_id or "-"),
            ("state hash", short_hash(group.state_hash)),
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
                short_hash(item.state_hash),
            ]
            for item in group.checkpoints
        ],
    )


def created(group: CheckpointGroup) -> CommandResult:
    outcome = shown(group)
    return CommandResult(
        data=outcome.data,
        blocks=[_group_fields(group)],
        messages=[f"checkpoint {group.label!r} created"],
    )


def deleted(group: CheckpointGroup, freed: int) -> CommandResult:
    return CommandResult(
        data={"plan_id": group.plan_id, "group_id": group.group_id, "freed_bytes": freed},
        messages=[f"checkpoint {group.group_id} ({group.label}) deleted, {size(freed)} freed"],
    )


def verified(
    plan_id: PlanId, groups: Sequence[CheckpointGroup], damages: Mapping[GroupId, str]
) -> CommandResult:
    whole = [group.group_id for group in groups if group.group_id not in damages]
    data = {
        "plan_id": plan_id,
        "verified": whole,
        "damaged": [{"group_id": key, "reason": reason} for key, reason in damages.items()],
    }
    if not damages:
        done = f"{count(len(whole), 'checkpoint')} verified: all of it can be restored"
        return CommandResult(data=data, messages=[done])
    from cleveragents.cli.views.failures import damaged  # noqa: PLC0415 - hardly ever any

    return damaged(
        data,
        f"{len(damages)} of {len(groups)} checkpoints cannot be restored",
        f"delete them with `agents plan checkpoint delete {plan_id} <CHECKPOINT_ID>`",
        Grid("Damaged", ["group", "reason"], list(damages.items())),
    )


def compared(
    old: CheckpointGroup, new: CheckpointGroup, changes: Sequence[tuple[str, FileChange]]
) -> CommandResult:
    from cleveragents.cli.views.files import FileRow, file_grid  # noqa: PLC0415 - `diff` alone

    return CommandResult(
        data={
            "plan_id": new.plan_id,
            "from": old.group_id,
            "to": new.group_id,
            "files": [
                {"resource": name, "path": change.path, "status": change.kind}
                for name, change in changes
            ],
        },
        blocks=[
            file_grid(
                f"From {old.label} to {new.label}",
                [FileRow(f"{name}:{change.path}", change.kind) for name, change in changes],
                column="status",
                empty="nothing differs",
            )
        ],
    )


def pruned(plan_id: PlanId, found: Explained, freed: int | None) -> CommandResult:
    """`freed` None: only looked at."""
    gone = found.decision.removed
    if freed is None:
        done = f"{count(len(gone), 'checkpoint')} would be pruned"
    else:
        done = f"{count(len(gone), 'checkpoint')} pruned, {size(freed)} freed"
    return CommandResult(
        data={
            "plan_id": plan_id,
            "dry_run": freed is None,
            "kept": [_explained(found, item) for item in found.groups if item.group_id not in gone],
            "removed": [_explained(found, item) for item in found.groups if item.group_id in gone],
            "freed_bytes": freed or 0,
        },
        blocks=[
            Grid(
                "Retention",
                ["group", "label", "size", "", "why"],
                [_retention_cells(found, item) for item in found.groups],
                empty="no checkpoints yet: agents plan execute makes them",
                cut=("label", "why"),
            )
        ],
        messages=[done if gone else "nothing to prune"],
    )


def _explained(found: Explained, item: GroupOutline) -> Mapping[str, Any]:
    return {
        **picked(item, "group_id label size_bytes created_at"),
        "reason": _why(found, item),
    }


def _retention_cells(found: Explained, item: GroupOutline) -> Sequence[str | Cell]:
    word = "removed" if item.group_id in found.decision.removed else "kept"
    return [item.group_id, item.label, size(item.size_bytes), toned(word), _why(found, item)]


def _why(found: Explained, item: GroupOutline) -> str:
    decision = found.decision
    return decision.removed.get(item.group_id) or decision.kept[item.group_id]
