"""`agents plan execute`, and what every command does that lets a plan go on."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import status as views
from cleveragents.domain.action import step_number
from cleveragents.domain.conflicts import UNDECIDED, Resolution
from cleveragents.domain.effects import EffectChoice
from cleveragents.domain.errors import StepFailedError, SubplansFailedError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan, State

EFFECTS = click.option(
    "--effects",
    type=click.Choice([EffectChoice.REPEAT.value, EffectChoice.SKIP.value]),
    help="Repeat, or take as done, steps whose effect outside the sandboxes may be there already.",
)


@command("agents plan execute latest", "agents -v plan execute <PLAN_ID>")
@arguments.PLAN
@EFFECTS
@click.pass_obj
def execute(app: App, plan_id: str | None, effects: str | None) -> None:
    """Start a plan, or go on with one that was interrupted or has failed."""
    run(app, app.plan(plan_id), chosen(effects))


def chosen(effects: str | None) -> EffectChoice:
    return EffectChoice(effects) if effects else EffectChoice.STOP


def run(
    app: App,
    plan_id: PlanId,
    choice: EffectChoice,
    resolution: Resolution = UNDECIDED,
    *,
    rebuild: bool = False,
) -> None:
    with app.working() as container:
        container.store_service.sweep()  # what a crash has left behind
        service = container.plan_resume_service
        finished(service.run(plan_id, choice, resolution, rebuild=rebuild))
    found = app.container.plan_queries.status(plan_id)
    holds = app.container.held_by(found.plan.action.confinement)
    app.report(views.executed(found, holds, listed=app.has_listed_steps))


def finished(plan: Plan) -> Plan:
    """The plan as it came back; raises StepFailedError if that was because a step failed."""
    if plan.state is State.ERRORED and plan.error is not None:
        step = f"{step_number(plan.error.step or 0)} ({plan.error.tool})"
        hint = plan.error.hint if plan.error.code == SubplansFailedError.code else None
        raise StepFailedError(plan.plan_id, step, plan.error.message, hint)
    return plan
