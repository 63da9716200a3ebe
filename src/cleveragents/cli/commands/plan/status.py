"""`agents plan status`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import status as views


@command("agents plan status latest", "agents plan status <PLAN_ID> --format json")
@arguments.PLAN
@click.pass_obj
def status(app: App, plan_id: str | None) -> None:
    """Show where a plan stands."""
    found = app.container.plan_queries.status(app.plan(plan_id))
    app.show(views.status(found, app.container.held_by(found.plan.action.confinement)))
