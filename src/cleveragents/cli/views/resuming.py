"""How it looks where a plan would go on."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cleveragents.cli.render.blocks import CommandResult
from cleveragents.cli.views import effects as effect_views
from cleveragents.cli.views.conflicts import conflict_data, conflict_title
from cleveragents.cli.views.words import picked
from cleveragents.domain.action import step_number

if TYPE_CHECKING:
    from cleveragents.application.services.execute.plan_resume_service import ResumePoint


def resume_point(point: "ResumePoint") -> CommandResult:
    plan = point.plan
    if point.next_step is None:
        where = "every step is done; nothing is left to execute"
    elif point.finishes_rollback:
        where = "it would first finish the interrupted rollback, then go on from there"
    else:
        where = f"it would go on with step {step_number(point.next_step)}{_name_of(point)}"
    return CommandResult(
        data={
            **picked(plan, "plan_id name phase state"),
            "next_step": point.next_step,
            "finishes_rollback": point.finishes_rollback,
            "last_checkpoint_id": plan.head,
            "effects": list(effect_views.ahead(point.effects)),
            **_conflicts(point),
        },
        messages=[f"{where}; nothing was changed"],
        warnings=[*effect_views.ahead_words(point.effects), *_words(point)],
    )


def _conflicts(point: "ResumePoint") -> Mapping[str, Any]:
    """The key is there only if something waits for a decision."""
    told = [
        {"child": child.name, "plan_id": child.plan_id, **conflict_data(conflict)}
        for child in point.conflicts
        for conflict in child.conflicts
    ]
    return {"conflicts": told} if told else {}


def _words(point: "ResumePoint") -> Sequence[str]:
    return [
        f"{conflict_title(child, conflict)}: the child would run again on top of what is merged;"
        " take a side with --ours or --theirs, or write it yourself with --edit"
        for child in point.conflicts
        for conflict in child.conflicts
    ]


def _name_of(point: "ResumePoint") -> str:
    steps, index = point.plan.action.steps, point.next_step or 0
    if index >= len(steps):
        return ", the end"  # all that is left is to say that it is complete
    return f" of {len(steps)}, {steps[index].name}"
