"""How a rollback looks, before it is done and after."""

from collections.abc import Sequence
from typing import Any

from cleveragents.application.services.rollback.target import RollbackQuestion
from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.files import FileRow, file_grid
from cleveragents.cli.views.words import count, picked, step_word
from cleveragents.domain.checkpoint import (
    RevertedFile,
    RollbackImpact,
    RollbackPreview,
    RollbackResult,
)
from cleveragents.domain.plan import State

# Keys are older than the glossary, which has no "cp".
_SAID = {"decisions_after_cp": "later decisions", "tool_calls_after_cp": "later tool calls"}


def rolled_back(result: RollbackResult, project: str) -> CommandResult:
    data = rollback_data(result)
    done = "Files restored" if result.only else "Rollback complete"
    return CommandResult(
        data=data,
        blocks=_blocks(result, data),
        messages=[
            done,
            f"in {where(result, project)}",
            f"undo it: agents plan rollback {result.plan_id} {result.undo_group.group_id}",
        ],
        warnings=rollback_warnings(result),
    )


def previewed(preview: RollbackPreview, project: str) -> CommandResult:
    data = rollback_data(preview)
    warnings = list(rollback_warnings(preview, foretold=True))
    if preview.finishes_first is not None:
        warnings.append(f"the interrupted rollback to {preview.finishes_first} is finished first")
    if preview.undoes_step:
        warnings.append("the step that was cut off is undone first, as a resume would do")
    return CommandResult(
        data={"dry_run": True, **data},
        blocks=_foretold(preview),
        messages=[
            f"nothing was changed in {where(preview, project)};"
            " a checkpoint of the present will be taken first"
        ],
        warnings=warnings,
    )


def where(impact: RollbackImpact | RollbackQuestion, project: str) -> str:
    """In whose files, for people."""
    return project if impact.in_place else f"the sandboxes of {project}"


def _foretold(preview: RollbackPreview) -> Sequence[Block]:
    """Short and without frames: it shall not look as if it were done, and leave room for that."""
    undone = [
        count(preview.decisions_discarded, "decision"),
        count(preview.tool_calls_undone, "tool call"),
    ]
    if preview.child_plans_invalidated:
        undone.append(count(preview.child_plans_invalidated, "child plan"))
    rows: list[tuple[str, str | Cell]] = [
        ("plan", Cell(preview.plan_id, "accent")),
        ("back to", f"{preview.group.group_id} ({preview.group.label})"),
        ("would undo", ", ".join(undone)),
    ]
    if preview.only:
        rows.append(("only", ", ".join(preview.only)))
    return [
        Fields("Preview: what a rollback would do", rows),
        reverted_grid(preview.reverted, "no file differs", foretold=True),
    ]


def _blocks(impact: RollbackResult, data: dict[str, Any]) -> Sequence[Block]:
    """The four panels that are promised."""
    what, state = data["impact"], data["post_rollback_state"]
    summary: list[tuple[str, str | Cell]] = [
        ("plan", Cell(impact.plan_id, "accent")),
        ("checkpoint", impact.group.group_id),
        ("label", impact.group.label),
        ("files reverted", str(len(impact.reverted))),
    ]
    if impact.only:
        summary.append(("only", ", ".join(impact.only)))
    return [
        Fields("Rollback Summary", summary, framed=True),
        reverted_grid(impact.reverted, "no file differs"),
        _panel("Impact", what),
        _panel("Post-Rollback State", {**state, "state": _in_words(impact)}),
    ]


def _in_words(impact: RollbackImpact) -> str:
    """A rollback of single files leaves the plan as it was."""
    return "waiting (for input)" if impact.state == State.QUEUED else step_word(impact.state)


def _panel(title: str, facts: dict[str, Any]) -> Fields:
    rows = [(_SAID.get(name, name.replace("_", " ")), str(fact)) for name, fact in facts.items()]
    return Fields(title, rows, framed=True)


def reverted_grid(
    files: Sequence[RevertedFile], empty: str, *, foretold: bool = False, framed: bool = True
) -> Grid:
    rows = [FileRow(item.file, item.action) for item in files]
    title = "Would be reverted" if foretold else "Changes Reverted"
    return file_grid(title, rows, column="action", empty=empty, framed=framed and not foretold)


def rollback_data(impact: RollbackImpact) -> dict[str, Any]:
    restored = f"{count(len(impact.reverted), 'file')} of" if impact.only else "restored to"
    waiting = " (awaiting input)" if impact.state == State.QUEUED else ""
    only = {"only": list(impact.only)} if impact.only else {}
    place = {"changed_by_others": list(impact.others), "left": list(impact.left)}
    return {
        "plan_id": impact.plan_id,
        "rollback_summary": {
            "plan": impact.plan_id,
            "checkpoint": impact.group.group_id,
            "label": impact.group.label,
            "files_reverted": len(impact.reverted),
            **only,
        },
        "changes_reverted": [picked(item, "file action") for item in impact.reverted],
        "impact": {
            "child_plans_invalidated": impact.child_plans_invalidated,
            "sandbox": f"{restored} {impact.group.group_id}",
            "decisions_after_cp": f"{impact.decisions_discarded} discarded",
            "tool_calls_after_cp": f"{impact.tool_calls_undone} undone",
        },
        "post_rollback_state": {
            "phase": impact.phase,
            "state": f"{impact.state}{waiting}",
            "checkpoints_remaining": impact.checkpoints_remaining,
        },
        **(place if impact.in_place else {}),
    }


def rollback_warnings(impact: RollbackImpact, *, foretold: bool = False) -> Sequence[str]:
    warnings = list(impact.effects.sentences(foretold=foretold))
    if impact.excluded:
        said = "no checkpoint has it" if impact.in_place else "as `exclude` says"
        warnings.append(f"left in place, {said}: {', '.join(impact.excluded)}")
    if impact.left:
        warnings.append(f"left as it is, changed by others: {', '.join(impact.left)}")
    elif impact.others:
        went = "would go back too" if foretold else "went back too"
        warnings.append(
            f"changed by others since the last checkpoint, {went}: {', '.join(impact.others)}"
        )
    return [*warnings, *impact.notes]
