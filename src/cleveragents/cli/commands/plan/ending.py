"""`agents plan cancel` and `agents plan discard`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import clean_up
from cleveragents.cli.views import plans as views
from cleveragents.domain.holdings import PlanHoldings


@command("agents plan cancel <PLAN_ID>", "agents plan cancel --reason 'the wrong branch' <PLAN_ID>")
@arguments.PLAN
@click.option("--reason", metavar="TEXT", help="Why: kept, and told wherever the plan is shown.")
@click.pass_obj
def cancel(app: App, plan_id: str | None, reason: str | None) -> None:
    """End a plan for good. Work in its sandboxes stays where it is."""
    result = app.container.plan_service.cancel(app.plan(plan_id), reason)
    app.report(views.cancelled(result, app.project(result.plan.plan_id)))


@command("agents plan discard <PLAN_ID>", "agents plan discard --yes <PLAN_ID>")
@arguments.PLAN
@arguments.YES
@click.pass_obj
def discard(app: App, plan_id: str | None, *, yes: bool) -> None:
    """End a plan, running or not, and remove its sandboxes and snapshots, applied or not.

    What would be lost is shown first.
    """
    wanted = app.plan(plan_id)

    def confirm(held: PlanHoldings) -> bool:
        question = clean_up.discard_question(held)
        return app.confirm(question, yes=yes, show=lambda: clean_up.holdings(held))

    with app.working() as container:
        result = container.discarding.discard(wanted, confirm)
    app.report(clean_up.discarded(result))
