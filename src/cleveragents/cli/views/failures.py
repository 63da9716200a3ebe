"""How it looks that a plan has failed."""

from collections.abc import Mapping
from typing import Any

from cleveragents.cli.render.blocks import Cell, Fields
from cleveragents.domain.plan import PlanFailure


def failure_data(failure: PlanFailure) -> Mapping[str, Any]:
    return {
        "message": failure.message,
        "tool": failure.tool,
        "step": failure.step,
        "checkpoint": failure.checkpoint,
        "recoverable": failure.recoverable,
    }


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
