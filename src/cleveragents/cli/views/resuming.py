"""Owns how it looks where a plan would go on."""

from typing import TYPE_CHECKING

from cleveragents.cli.render.blocks import Outcome
from cleveragents.cli.views import effects as effect_views

if TYPE_CHECKING:
    from cleveragents.application.services.plan_resume_service import ResumePoint


def resume_point(point: "ResumePoint") -> Outcome:
    plan = point.plan
    if point.next_step is None:
        where = "every step is done; nothing is left to execute"
    elif point.finishes_rollback:
        where = "it would first finish the interrupted rollback, then go on from there"
    else:
        where = f"it would go on with step {point.next_step}{_name_of(point)}"
    return Outcome(
        data={
            "plan_id": plan.plan_id,
            "phase": plan.phase,
            "state": plan.state,
            "next_step": point.next_step,
            "finishes_rollback": point.finishes_rollback,
            "last_checkpoint_id": plan.head,
            "effects": list(effect_views.ahead(point.effects)),
        },
        messages=[f"{where}; nothing was changed"],
        warnings=effect_views.ahead_words(point.effects),
    )


def _name_of(point: "ResumePoint") -> str:
    steps, index = point.plan.action.steps, point.next_step or 0
    if index >= len(steps):
        return ", the end"  # all that is left is to say that it is complete
    return f" of {len(steps)}, {steps[index].name}"
