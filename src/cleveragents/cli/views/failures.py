"""How it looks that a plan has failed, or that snapshots are damaged."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.cli.render.blocks import Cell, CommandResult, Fields, Grid
from cleveragents.cli.views.words import picked
from cleveragents.domain.errors import ProgramFailedError, SnapshotDamagedError
from cleveragents.domain.plan import Plan, PlanFailure

_RESUME = "agents plan resume"


def failure_data(failure: PlanFailure) -> Mapping[str, Any]:
    return picked(failure, "message tool step checkpoint recoverable")


def failure_block(failure: PlanFailure) -> Fields:
    """What to do about it is below, among what can be typed."""
    first, *further = failure.message.splitlines() or [""]
    rows: list[tuple[str, str | Cell]] = [("message", Cell(first, "bad"))]
    rows += [("", Cell(line, "bad")) for line in further]
    if failure.step is not None:
        rows.append(("step", str(failure.step + 1)))
    if failure.tool is not None:
        rows.append(("tool", failure.tool))
    return Fields("Error", rows)


def next_of_program(plan: Plan) -> Sequence[str]:
    """What can be typed after a program that did not end well; what would mend the cause first."""
    plan_id, failure = plan.plan_id, plan.error
    usual = ProgramFailedError.usual(plan_id)
    told = failure is not None and failure.hint.endswith(usual)
    remedy = failure.hint.removesuffix(usual).removesuffix("; or ") if failure and told else ""
    return [
        *([remedy] if remedy else []),
        f"take what is there: agents apply --as-it-is {plan_id}",
        f"take back its last step: agents undo --plan {plan_id}",
        f"start it again: {_RESUME} {plan_id}",
        f"throw it away: agents discard {plan_id}",
    ]


def next_after_failure(plan: Plan) -> Sequence[str]:
    """What can be typed; the failure's own hint comes last, unless it says the same."""
    failure = plan.error
    if plan.action.is_program:
        return next_of_program(plan)
    steps = [f"try again: {_RESUME} {plan.plan_id}"]
    if failure is None:
        return steps
    number = None if failure.step is None else failure.step + 1
    if plan.action.decides:
        steps.append(f"tell it more: agents plan prompt {plan.plan_id} 'what it needs to know'")
    elif number is not None:
        steps.append(
            f"another step: agents plan correct {number} -g 'why' --step-file step.yaml"
            f" --plan {plan.plan_id}"
        )
    if failure.checkpoint:
        steps.append(f"go back: agents plan rollback {plan.plan_id} {failure.checkpoint}")
        steps.append(f"further back: agents plan checkpoint list {plan.plan_id}")
    says_the_same = failure.hint.startswith(f"{_RESUME} {plan.plan_id}")
    return steps if says_the_same or not failure.hint else [*steps, failure.hint]


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
