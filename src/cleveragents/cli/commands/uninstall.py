"""`agents uninstall`: everything of ours goes, wherever it is."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import uninstalling as views


@command("agents uninstall --dry-run", "agents uninstall")
@click.option("--keep-config", is_flag=True, help="Leave the global config file.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@arguments.YES
@click.pass_obj
def uninstall(app: App, *, keep_config: bool, dry_run: bool, yes: bool) -> None:
    """Remove everything that agents has made: all plans, sandboxes and snapshots, its names in
    every repository, and the data folder.

    Your files, branches and settings of git stay as they are. The program itself stays too; how to
    remove it is said at the end.
    """
    with app.working() as container:
        service = container.uninstall_service
        offer = service.look()
        if dry_run:
            app.show(views.offered(offer, keep_config=keep_config))
            return
        done = service.uninstall(
            offer,
            lambda found: app.confirm(
                views.question(found),
                yes=yes,
                show=lambda: views.offered(found, keep_config=keep_config),
            ),
            keep_settings=keep_config,
        )
    app.report(views.uninstalled(done))
