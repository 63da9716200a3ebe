"""How the words for every day answer: what was undone or redone, and what to type next."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.files import FileRow, file_grid
from cleveragents.cli.views.rollbacks import (
    previewed,
    rollback_data,
    rollback_warnings,
    where,
)
from cleveragents.cli.views.words import count, picked
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.checkpoint import RevertedFile

if TYPE_CHECKING:
    from cleveragents.application.services.rollback.undo_service import (
        StepsForeseen,
        StepsMoved,
    )
    from cleveragents.domain.effects import EffectReport

_DONE = {"undo": "Undone", "redo": "Redone"}
_OTHER = {"undo": "redo", "redo": "undo"}


Tables = Mapping[str, ResourceDiff]
"""By the name of the database."""


def moved(found: "StepsMoved", project: str, tables: Tables) -> CommandResult:
    """The data of a rollback, which it is, with the steps and tables that it was about."""
    result, word = found.result, found.way.value
    return CommandResult(
        data={
            **rollback_data(result),
            "steps": [picked(step, "number name") for step in found.steps],
            "tables": [{"table": row.path, "status": row.word} for row in table_rows(tables)],
            "undo_left": found.undo_left,
            "redo_left": found.redo_left,
        },
        blocks=_blocks(found, tables),
        messages=[
            f"{_DONE[word]}, in {where(result, project)}",
            _take_back(found),
            *_next(found),
        ],
        warnings=rollback_warnings(result),
    )


def foreseen(found: "StepsForeseen", project: str) -> CommandResult:
    return previewed(found.preview, project)


def outside(effects: "EffectReport") -> CommandResult:
    """What is asked about: only this cannot be brought back."""
    rows = [(str(at), text) for at, text in enumerate(effects.sentences(foretold=True), 1)]
    return CommandResult(data={}, blocks=[Fields("Outside the sandboxes", rows)])


def by_others(names: Sequence[str]) -> CommandResult:
    """What else would go: a checkpoint holds it, but nobody of ours has done it."""
    rows = [(str(at), name) for at, name in enumerate(names, 1)]
    return CommandResult(data={}, blocks=[Fields("Changed by others since then", rows)])


def table_rows(tables: Tables) -> Sequence[FileRow]:
    return [
        FileRow(f"{name}:{file.path}", file.kind, file.insertions, file.deletions, counted=True)
        for name, item in tables.items()
        for file in item.files
    ]


def other_files(files: Sequence[RevertedFile], tables: Tables) -> Sequence[FileRow]:
    """Without the databases whose tables are told."""
    told = {
        spelled
        for name, item in tables.items()
        for file in item.files
        for spelled in (file.path.rpartition("/")[0], f"{name}:{file.path.rpartition('/')[0]}")
    }
    return [FileRow(item.file, item.action) for item in files if item.file not in told]


def _blocks(found: "StepsMoved", tables: Tables) -> Sequence[Block]:
    result = found.result
    files, rows = other_files(result.reverted, tables), table_rows(tables)
    facts: list[tuple[str, str | Cell]] = [
        (f"step {step.number}", Cell(step.name, "accent")) for step in found.steps
    ]
    if result.child_plans_invalidated:
        facts.append(("child plans", f"{result.child_plans_invalidated} no longer count"))
    facts.append(("now at", f"{result.group.group_id} ({result.group.label})"))
    blocks: list[Block] = [Fields(_title(found, len(files), len(rows)), facts)]
    if files or not rows:
        blocks.append(file_grid("Files", files, column="action", empty="no file differs"))
    if rows:
        blocks.append(
            Grid("Tables", ["table", "change", "rows"], [[r.path, r.word, r.lines] for r in rows])
        )
    return blocks


def _title(found: "StepsMoved", files: int, tables: int) -> str:
    counts = ((len(found.steps), "step"), (files, "file"), (tables, "table"))
    told = [count(number, noun) for number, noun in counts if number]
    return f"{_DONE[found.way.value]}: {', '.join(told) or 'no file differs'}"


def _take_back(found: "StepsMoved") -> str:
    many = f" -n {found.changes}" if found.changes > 1 else ""
    other = _OTHER[found.way.value]
    return f"take it back: agents {other} --plan {found.result.plan_id}{many}"


def _next(found: "StepsMoved") -> Iterator[str]:
    plan_id, word = found.result.plan_id, found.way.value
    left = found.undo_left if word == "undo" else found.redo_left
    if left:
        where = "further back" if word == "undo" else "further forward"
        yield f"{where}: agents {word} --plan {plan_id} ({count(left, 'more change')})"
    else:
        yield "this is the start" if word == "undo" else "there is nothing more to redo"
    if found.result.in_place:
        return
    if found.is_complete:
        yield f"bring it into the project: agents apply {plan_id}"
    elif found.decides and (found.undo_left or word == "redo"):
        flag = "" if found.is_result else "--as-it-is "
        yield f"take what is there: agents apply {flag}{plan_id}"
