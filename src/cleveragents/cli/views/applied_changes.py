"""How an apply that is taken back looks, or brought again: the question, and what came of it."""

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

from cleveragents.cli.render.blocks import Block, Cell, CommandResult, Fields
from cleveragents.cli.views.files import file_data, file_grid, files_of, rows_of
from cleveragents.cli.views.words import count, picked
from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.changes import ResourceDiff

if TYPE_CHECKING:
    from datetime import datetime

    from cleveragents.application.services.apply.moves import MovedApply, MoveQuestion

_DONE = {"undo": "Undone", "redo": "Redone"}
_OTHER = {"undo": "redo", "redo": "undo"}


def question(asked: "MoveQuestion", project: str) -> str:
    files = sum(len(diff.files) for diff in asked.diffs.values())
    told = "Take the apply back out of" if asked.way.value == "undo" else "Apply again to"
    return f"{told} {project} ({count(files, 'changed file')})"


def foreseen(asked: "MoveQuestion", project: str) -> CommandResult:
    """Nothing has happened yet, and so nothing looks done."""
    word = asked.way.value
    return CommandResult(
        data={
            **picked(asked.plan, "plan_id name phase state"),
            "project": project,
            "would": word,
            "resources": _resources(asked.targets),
            "files": file_data(files_of(asked.diffs)),
        },
        blocks=[
            Fields(
                f"Preview: what {'an' if word == 'undo' else 'a'} {word} of the apply would do",
                [("project", project), *asked.targets.items()],
            ),
            _grid(asked.diffs, "Would change"),
        ],
        messages=["nothing was changed"],
        warnings=_notes(asked.diffs),
    )


def moved(result: "MovedApply", project: str) -> CommandResult:
    plan, word = result.plan, result.way.value
    facts: list[tuple[str, str | Cell]] = [
        ("plan", Cell(plan.plan_id, "accent")),
        ("project", project),
        *result.targets.items(),
    ]
    blocks: list[Block] = [Fields(f"{_DONE[word]}: the apply", facts)]
    if not result.finished:
        blocks.append(_grid(result.diffs, "Files"))
    before = "what it was before the apply" if word == "undo" else "what the apply had made it"
    told = "an interrupted one was finished: " if result.finished else ""
    return CommandResult(
        data={
            **picked(plan, "plan_id name phase state"),
            "project": project,
            "apply": "undone" if word == "undo" else "applied",
            "finished": result.finished,
            "resources": _resources(result.targets),
            "files": file_data(files_of(result.diffs)),
            "undo_until": result.until,
        },
        blocks=blocks,
        messages=[
            f"{_DONE[word]}: {told}{project} is {before}",
            f"take it back: agents {_OTHER[word]} --plan {plan.plan_id} (until"
            f" {moment(result.until)})",
        ],
        warnings=_notes(result.diffs),
    )


def kept(change: AppliedChange, now: "datetime") -> Mapping[str, Any]:
    """For JSON: whether the project has it, and what can be done with it until when."""
    can = change.can_move(now)
    return {
        "state": _state(change),
        "until": change.until if can else None,
        "next": f"agents {_word(change)} --plan {change.plan_id}" if can else None,
    }


def sentences(change: AppliedChange | None, now: "datetime") -> list[str]:
    """For people, the same; nothing where there is nothing to tell."""
    if change is None:
        return []
    if not change.can_move(now):
        return ["the apply was undone"] if change.side is ApplySide.BEFORE else []
    word, until = _word(change), moment(change.until)
    typed = f"agents {word} --plan {change.plan_id}"
    if change.heading is not None:
        return [f"the {word} of the apply was interrupted; finish it: {typed}"]
    told = "the apply can be undone" if word == "undo" else "the apply is undone; it can be redone"
    return [f"{told} until {until}: {typed}"]


def moment(when: "datetime") -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _state(change: AppliedChange) -> str:
    if change.heading is not None:
        return "interrupted"
    return "undone" if change.side is ApplySide.BEFORE else "applied"


def _word(change: AppliedChange) -> str:
    side = change.heading or change.side.other
    return "undo" if side is ApplySide.BEFORE else "redo"


def _resources(targets: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"resource": name, "how": how} for name, how in targets.items()]


def _grid(diffs: Mapping[str, ResourceDiff], title: str) -> Block:
    return file_grid(title, rows_of(diffs), column="status", empty="nothing changed")


def _notes(diffs: Mapping[str, ResourceDiff]) -> list[str]:
    return [f"{name}: {note}" for name, item in diffs.items() for note in item.notes]
