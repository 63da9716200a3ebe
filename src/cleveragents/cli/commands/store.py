"""`agents store …`."""

import click

from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.views import store as views


@click.group("store", cls=LazyGroup)
def store() -> None:
    """See and check what is stored for all plans."""


@store.command(epilog=examples("agents store status", "agents store status --format json"))
@click.pass_obj
def status(app: App) -> None:
    """Show how much room the snapshots take, by plan."""
    app.show(views.status(app.container.store_service.status()))


@store.command(epilog=examples("agents store verify"))
@click.pass_obj
def verify(app: App) -> None:
    """Prove by hash that every checkpoint of every unfinished plan can be restored."""
    app.show(views.verified(app.container.store_service.verify()))
