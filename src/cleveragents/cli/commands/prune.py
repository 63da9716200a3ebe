"""`agents prune`: what old plans still hold, all of them at once."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import clean_up as views
from cleveragents.domain.ages import age


@command(
    "agents prune --older-than 14d --dry-run",
    "agents prune --older-than 14d",
    "agents prune --older-than 8w --unapplied  # also what was never applied",
)
@click.option(
    "--older-than",
    metavar="AGE",
    required=True,
    help="How long ago they ended, or were last worked on: 90m, 12h, 14d, 2w.",
)
@click.option("--unapplied", is_flag=True, help="Also plans that are not over; ends them.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@arguments.YES
@click.pass_obj
def prune(app: App, older_than: str, *, unapplied: bool, dry_run: bool, yes: bool) -> None:
    """Remove old plans that are applied or cancelled, of all places, with all that they hold:
    sandboxes, snapshots, records, and their names in repositories.

    Plans that are not over stay, unless --unapplied is said.
    """
    limit = age(older_than, "--older-than")
    with app.working() as container:
        offer = container.prune_service.look(limit, unapplied=unapplied)
        if dry_run:
            app.show(views.offered(offer))
            return
        done = container.prune_service.prune(
            offer,
            lambda due: app.confirm(
                views.prune_question(due), yes=yes, show=lambda: views.offered(due)
            ),
        )
    app.report(views.pruned(done))
