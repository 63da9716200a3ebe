"""`agents tool …`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.views import tools as views
from cleveragents.domain.action import Action

_PLAN = click.option(
    "--plan", "plan_id", metavar="PLAN_ID", help="Also the own tools of this plan."
)


@click.group("tool", cls=LazyGroup)
def tool() -> None:
    """See the tools that steps can use."""


@tool.command("list", epilog=examples("agents tool list", "agents tool list --plan <PLAN_ID>"))
@_PLAN
@click.pass_obj
def list_tools(app: App, plan_id: str | None) -> None:
    """List the tools, what they take, and whether they write."""
    app.show(views.listed(app.container.tools.specs(_action(app, plan_id))))


@tool.command(
    "show",
    epilog=examples("agents tool show git.commit", "agents tool show migrate --plan <PLAN_ID>"),
)
@arguments.TOOL
@_PLAN
@click.pass_obj
def show(app: App, name: str, plan_id: str | None) -> None:
    """Show one tool: its parameters, what it writes, its effects, and a step that uses it."""
    action = _action(app, plan_id)
    resources = [spec.name for spec in action.resources] if action else []
    app.show(views.shown(app.container.tools.find(action, name), resources))


def _action(app: App, plan_id: str | None) -> Action | None:
    return app.container.plan_finder.get(app.plan(plan_id)).action if plan_id else None
