"""`agents action …`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.views import actions as views


@click.group("action", cls=LazyGroup)
def action() -> None:
    """Check action files, and tell editors what is in them."""


@action.command(
    epilog=examples(
        "agents action check add-login.yaml",
        "agents action check add-login.yaml --resource code=../shop",
    )
)
@arguments.action_file("file")
@arguments.RESOURCES
@click.option(
    "--file-only", is_flag=True, help="Do not look at the resources and the actor that it names."
)
@click.pass_obj
def check(app: App, file: str, resources: tuple[str, ...], *, file_only: bool) -> None:
    """Say everything that is wrong with an action file, or with what it names: all that `plan use`
    would refuse. Nothing is made or changed.
    """
    service, given = app.container.action_check, arguments.overrides(resources)
    app.show(views.checked(file, service.check(file, given, only_file=file_only)))


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
