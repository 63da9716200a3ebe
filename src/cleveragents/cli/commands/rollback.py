"""`agents plan rollback`."""

from collections.abc import Mapping

import click

from cleveragents.application.services.rollback.target import RollbackQuestion
from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.commands.everyday import in_place
from cleveragents.cli.framework import command
from cleveragents.cli.views import rollbacks as views
from cleveragents.cli.words_given import plan_and_checkpoint
from cleveragents.domain.errors import PlanLockedError


@command(
    "agents plan rollback --dry-run 1",
    "agents plan rollback -1",
    "agents plan rollback --yes --format json hello-3 'before the migration'",
    "agents plan rollback --only src/app.py --only docs <PLAN_ID> <CHECKPOINT_ID>",
)
@arguments.PLAN_BEFORE_CHECKPOINT
@arguments.checkpoint()
@arguments.YES
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option(
    "--rebuild",
    is_flag=True,
    help="Make sandboxes that are gone or unusable again from their snapshots, then go back.",
)
@click.option(
    "--now", is_flag=True, help="If its program still runs, stop that first, as Ctrl-C would."
)
@in_place.KEEP
@click.option(
    "--only",
    metavar="PATH",
    type=arguments.AS_IT_IS,
    multiple=True,
    help="Bring back this file or folder only, and discard no decision. With several resources:"
    " RESOURCE:PATH. May be repeated.",
)
@click.pass_obj
def rollback(
    app: App,
    plan_id: str | None,
    checkpoint_id: str | None,
    only: tuple[str, ...],
    **flags: bool,
) -> None:
    """Take a plan and all its sandboxes back to a checkpoint.

    What is there now becomes a checkpoint first, so that this can be undone; the last line of the
    answer says how. Your project is not touched.
    """
    _refuse_both(flags)
    wanted, checkpoint_id = plan_and_checkpoint(app, plan_id, checkpoint_id)
    project = app.project(wanted)
    if flags["dry_run"]:
        preview = app.container.rollback_service.preview(wanted, checkpoint_id, only)
        app.show(views.previewed(preview, project))
        return

    def confirm(question: RollbackQuestion) -> bool:
        target = question.target
        if not in_place.agreed(app, question, keep=flags["keep"], yes=flags["yes"]):
            return False
        asked = "Restore these files from" if only else "Roll back to"
        return app.confirm(
            f"{asked} {target.group_id} ({target.label}), in {views.where(question, project)}",
            yes=flags["yes"],
            show=lambda: views.previewed(question.preview, project),
        )

    with app.working() as container:
        if flags["now"]:
            container.plan_service.stop(wanted)
        more = {name: flags[name] for name in ("rebuild", "keep")}
        try:
            result = container.rollback_service.rollback(
                wanted, checkpoint_id, confirm, only, **more
            )
        except PlanLockedError as error:
            raise error.stoppable() from None
    app.report(views.rolled_back(result, project))


def _refuse_both(flags: Mapping[str, bool]) -> None:
    if flags["dry_run"] and flags["rebuild"]:
        raise click.UsageError("--dry-run changes nothing, and so it makes no sandbox again")
