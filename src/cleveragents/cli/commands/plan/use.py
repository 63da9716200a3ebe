"""`agents plan use`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import plans as views


@command(
    "agents plan use add-login.yaml",
    "agents plan use add-login.yaml --resource code=../shop --include-uncommitted",
)
@arguments.action_file("action")
@arguments.RESOURCES
@click.option("--include-uncommitted", is_flag=True, help="Take uncommitted work along.")
@click.pass_obj
def use(app: App, action: str, resources: tuple[str, ...], *, include_uncommitted: bool) -> None:
    """Make a plan from an action file. Nothing of the project is changed."""
    overrides = arguments.overrides(resources)
    result = app.container.plan_service.use(
        action, overrides, include_uncommitted=include_uncommitted
    )
    app.report(views.used(result))
