"""`agents doctor`."""

from pathlib import Path

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import doctor as views
from cleveragents.cli.views.words import count
from cleveragents.domain.errors import UsageError

_MOVED = "agents doctor --fix --moved /old/project=/new/project"


@command("agents doctor", "agents doctor --fix", _MOVED)
@click.option("--fix", is_flag=True, help="Mend what can be mended, after showing it.")
@arguments.YES
@click.option(
    "--moved",
    multiple=True,
    metavar="OLD=NEW",
    type=arguments.AS_IT_IS,
    help="What was at OLD, or below it, is at NEW now; may be repeated.",
)
@click.pass_obj
def doctor(app: App, *, fix: bool, yes: bool, moved: tuple[str, ...]) -> None:
    """Find what crashes, moved repositories and deleted sandboxes have left behind.

    Nothing is changed without --fix, and work that exists nowhere else is never removed.
    """
    service = app.container.doctor_service
    found = service.examine(_places(app, moved))
    mendable = [finding for finding in found.findings if finding.mendable]
    if not (fix and mendable):
        app.show(views.examined(found))
        return
    app.require(
        f"Mend {count(len(mendable), 'finding')}", yes=yes, show=lambda: views.examined(found)
    )
    with app.working():
        treated = service.mend(found)
    app.report(views.mended(found, treated))


def _places(app: App, moved: tuple[str, ...]) -> dict[str, str]:
    """Raises UsageError."""
    found: dict[str, str] = {}
    for text in moved:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise UsageError(f"--moved wants OLD=NEW, and not {text!r}", _MOVED)
        found[_absolute(app, old)] = _absolute(app, new)
    return found


def _absolute(app: App, path: str) -> str:
    """Plans know the places of their projects without links in them."""
    return str(Path(app.cwd, path).expanduser().resolve())
