"""Which required validations stand between a plan and its apply."""

from collections.abc import Sequence
from datetime import datetime

from cleveragents.domain.action import Action, Validation
from cleveragents.domain.decision import ToolCall, ToolCallStatus


def required(action: Action) -> bool:
    return any(action.validation(s.tool) is Validation.REQUIRED for s in action.validations)


def unmet(action: Action, calls: Sequence[ToolCall]) -> tuple[str, ...]:
    """Each required validation that has not passed since the last change, and why not.

    `calls` are those that still count.
    """
    work = [call.position.seq for call in calls if action.validation(call.tool) is None]
    since = [call for call in calls if call.position.seq > max(work, default=-1)]
    found: list[str] = []
    for step in action.validations:
        if action.validation(step.tool) is not Validation.REQUIRED:
            continue
        runs = [c for c in since if c.tool == step.tool and c.arguments == step.arguments]
        if not runs:
            found.append(f"{step.name} has not run since the last change")
        elif max(runs, key=_ended).status is ToolCallStatus.FAILED:
            found.append(f"{step.name} has failed: {max(runs, key=_ended).error}")
    return tuple(found)


def _ended(call: ToolCall) -> datetime:
    return call.finished_at
