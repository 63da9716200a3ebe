"""How one step looks: when, what with, what it said, and what it changed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cleveragents.cli.render.blocks import Block, Cell, Code, CommandResult, Fields, Shown
from cleveragents.cli.views.files import FileRow, file_data, file_grid, files_of, rows_of
from cleveragents.cli.views.words import clock_time, picked, toned
from cleveragents.domain.decision import ToolCall

if TYPE_CHECKING:
    from cleveragents.application.services.plans.step_service import ShownStep

_LONGEST_ARGUMENT = 200


def shown(found: "ShownStep") -> CommandResult:
    decision, patch = found.decision, "".join(item.patch for item in found.diffs.values())
    blocks: list[Block] = [Fields(_title(found), list(_facts(found)))]
    blocks += [
        Code("What it said", call.result.output) for call in found.calls if call.result.output
    ]
    rows = _told(found.calls) if found.notes else rows_of(found.diffs)
    if rows or not found.notes:
        blocks.append(file_grid("Files", rows, column="status", empty="no file changed"))
    if patch:
        blocks.append(Code("Patch", patch, "diff"))
    return CommandResult(
        data={
            **picked(found.plan, "plan_id name"),
            **picked(decision, "decision_id step_index chosen superseded"),
            "checkpoint": found.after.group_id if found.after else None,
            "from": found.before.group_id if found.before else None,
            "tool_calls": [_call(call) for call in found.calls],
            "files": file_data(files_of(found.diffs)),
            "patch": patch,
        },
        blocks=blocks,
        warnings=found.notes,
    )


def _told(calls: Sequence[ToolCall]) -> list[FileRow]:
    """What was written down about the step when it ran, where nothing is left to compare."""
    return [FileRow(change.path, change.kind) for call in calls for change in call.changes]


def _title(found: "ShownStep") -> str:
    index = found.decision.step_index
    number = "" if index is None else f" step {index + 1}"
    return f"{found.plan.name}{number}: {found.decision.chosen}"


def _facts(found: "ShownStep") -> Iterator[tuple[str, Shown]]:
    if found.decision.superseded:
        yield "superseded", Cell("yes: a rollback or a correction has taken it back", "warn")
    for call in found.calls:
        seconds = (call.finished_at - call.started_at).total_seconds()
        yield "tool", call.tool
        yield from ((name, _short(value)) for name, value in call.arguments.items())
        yield "when", f"{clock_time(call.started_at)}, for {seconds:.1f} s"
        yield "status", toned(call.status)
        if call.error:
            yield "error", Cell(call.error, "bad")
    if not found.calls:
        yield "when", clock_time(found.decision.created_at)
        yield "status", "not run yet"
    if found.decision.rationale:
        yield "why", found.decision.rationale


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_ARGUMENT else f"{text[:_LONGEST_ARGUMENT]}…"


def _call(call: ToolCall) -> Mapping[str, Any]:
    return {
        **picked(call, "tool arguments status error undone"),
        "output": call.result.output,
        "started": call.started_at,
        "finished": call.finished_at,
    }
