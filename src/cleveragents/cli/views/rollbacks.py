"""How a rollback looks, before it is done and after."""

from collections.abc import Sequence
from typing import Any

from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.words import count, picked, toned
from cleveragents.domain.checkpoint import (
    RevertedFile,
    RollbackImpact,
    RollbackPreview,
    RollbackResult,
)
from cleveragents.domain.plan import State


def rolled_back(result: RollbackResult, project: str) -> CommandResult:
    data = _data(result)
    done = "Files restored" if result.only else "Rollback complete"
    return CommandResult(
        data=data,
        blocks=_blocks(result, data),
        messages=[
            done,
            f"in the sandboxes of {project}",
            f"undo it: agents plan rollback {result.plan_id} {result.undo_group.group_id}",
        ],
        warnings=_warnings(result),
    )


def previewed(preview: RollbackPreview, project: str) -> CommandResult:
    data = _data(preview)
    warnings = list(_warnings(preview, foretold=True))
    if preview.finishes_first is not None:
        warnings.append(f"the interrupted rollback to {preview.finishes_first} is finished first")
    if preview.undoes_step:
        warnings.append("the step that was cut off is undone first, as a resume would do")
    return CommandResult(
        data={"dry_run": True, **data},
        blocks=_blocks(preview, data),
        messages=[
            f"nothing was changed in the sandboxes of {project};"
            " a checkpoint of the present will be taken first"
        ],
        warnings=warnings,
    )


def _blocks(impact: RollbackImpact, data: dict[str, Any]) -> Sequence[Block]:
    what, state = data["impact"], data["post_rollback_state"]
    summary: list[tuple[str, str | Cell]] = [
        ("plan", Cell(impact.plan_id, "accent")),
        ("checkpoint", impact.checkpoint_id),
        ("label", impact.group.label),
        ("files reverted", str(len(impact.reverted))),
    ]
    if impact.only:
        summary.append(("only", ", ".join(impact.only)))
    return [
        Fields("Rollback Summary", summary),
        reverted_grid(impact.reverted, "no file differs"),
        Fields("Impact", [(key.replace("_", " "), str(what[key])) for key in what]),
        Fields("Post-Rollback State", [(k.replace("_", " "), str(state[k])) for k in state]),
    ]


def reverted_grid(files: Sequence[RevertedFile], empty: str) -> Grid:
    rows = [[item.file, toned(item.action)] for item in files]
    return Grid("Changes Reverted", ["file", "action"], rows, empty=empty)


def _data(impact: RollbackImpact) -> dict[str, Any]:
    restored = f"{count(len(impact.reverted), 'file')} of" if impact.only else "restored to"
    waiting = " (awaiting input)" if impact.state == State.QUEUED else ""
    only = {"only": list(impact.only)} if impact.only else {}
    return {
        "rollback_summary": {
            "plan": impact.plan_id,
            "checkpoint": impact.checkpoint_id,
            "label": impact.group.label,
            "files_reverted": len(impact.reverted),
            **only,
        },
        "changes_reverted": [picked(item, "file action") for item in impact.reverted],
        "impact": {
            "child_plans_invalidated": impact.child_plans_invalidated,
            "sandbox": f"{restored} {impact.checkpoint_id}",
            "decisions_after_cp": f"{impact.decisions_discarded} discarded",
            "tool_calls_after_cp": f"{impact.tool_calls_undone} undone",
        },
        "post_rollback_state": {
            "phase": impact.phase,
            "state": f"{impact.state}{waiting}",
            "checkpoints_remaining": impact.checkpoints_remaining,
        },
    }


def _warnings(impact: RollbackImpact, *, foretold: bool = False) -> Sequence[str]:
    warnings = list(impact.effects.sentences(foretold=foretold))
    if impact.excluded:
        warnings.append(f"left in place, as `exclude` says: {', '.join(impact.excluded)}")
    return [*warnings, *impact.notes]
