"""`agents action …`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.views import actions as views


@click.group("action", cls=LazyGroup)
def action() -> None:
    """Check action files, and tell editors what is in them."""


@action.command(epilog=examples("agents action check add-login.yaml"))
@arguments.action_file("file")
@click.pass_obj
def check(app: App, file: str) -> None:
    """Read an action file and say everything that is wrong with it. No plan is made."""
    app.show(views.checked(file, app.container.actions.read(file, {})))


@action.command(
    epilog=examples(
        "agents action schema --format plain > action.schema.json",
        "agents action schema --format json",
    )
)
@click.pass_obj
def schema(app: App) -> None:
    """Print the JSON Schema of action files, for editors.

    With --format json it is in `data.schema`; otherwise it is all that is printed.
    """
    app.show(views.schema(app.container.action_json_schema()))
