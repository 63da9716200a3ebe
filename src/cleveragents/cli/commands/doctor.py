"""Owns `agents doctor`."""

import click

from cleveragents.cli.app import App
from cleveragents.cli.framework import AgentsCommand, examples
from cleveragents.cli.views import doctor as views
from cleveragents.cli.views.words import count


@click.command(cls=AgentsCommand, epilog=examples("agents doctor", "agents doctor --fix"))
@click.option("--fix", is_flag=True, help="Mend what can be mended, after showing it.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def doctor(app: App, *, fix: bool, yes: bool) -> None:
    """Find what crashes, moved repositories and deleted sandboxes have left behind.

    Nothing is changed without --fix, and work that exists nowhere else is never removed.
    """
    service = app.container.doctor_service
    found = service.examine()
    mendable = [finding for finding in found.findings if finding.mendable]
    if not (fix and mendable):
        app.show(views.examined(found))
        return
    app.require(
        f"Mend {count(len(mendable), 'finding')}", yes=yes, show=lambda: views.examined(found)
    )
    with app.working():
        treated = service.mend(found)
    app.show(views.mended(found, treated))
