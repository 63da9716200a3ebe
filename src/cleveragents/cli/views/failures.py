"""How it looks that a plan has failed, or that snapshots are damaged."""

from collections.abc import Mapping
from typing import Any

from cleveragents.cli.render.blocks import Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.words import picked
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.plan import PlanFailure


def failure_data(failure: PlanFailure) -> Mapping[str, Any]:
    return picked(failure, "message tool step checkpoint recoverable")


def failure_block(failure: PlanFailure) -> Fields:
    rows: list[tuple[str, str | Cell]] = [("message", Cell(failure.message, "bad"))]
    if failure.step is not None:
        rows.append(("step", str(failure.step)))
    if failure.tool is not None:
        rows.append(("tool", failure.tool))
    if failure.checkpoint is not None:
        rows.append(("checkpoint before", failure.checkpoint))
    rows.append(("what to do", failure.hint))
    return Fields("Error", rows)


def damaged(data: Mapping[str, Any], message: str, hint: str, which: Grid) -> CommandResult:
    """Found by looking, so that it is an answer, and an error all the same."""
    error = {"code": SnapshotDamagedError.code, "message": message, "hint": hint}
    return CommandResult(
        data={**data, "error": error},
        blocks=[which],
        messages=[message, hint],
        status="error",
        exit_code=1,
    )
