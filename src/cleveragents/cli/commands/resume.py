"""`agents plan resume`: going on, and what a person decides about conflicts of children."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.commands.plan import EFFECTS, chosen, run
from cleveragents.cli.editor import edited
from cleveragents.cli.framework import AgentsCommand, examples
from cleveragents.cli.views import resuming as views
from cleveragents.cli.views.conflicts import conflict_title
from cleveragents.domain.conflicts import UNDECIDED, Resolution, Side
from cleveragents.domain.errors import UsageError
from cleveragents.domain.ids import PlanId


@click.command(
    cls=AgentsCommand,
    epilog=examples(
        "agents plan resume --dry-run <PLAN_ID>",
        "agents plan resume --effects skip <PLAN_ID>",
        "agents plan resume --theirs <PLAN_ID>",
        "agents plan resume --edit <PLAN_ID>",
        "agents plan resume --rebuild <PLAN_ID>",
    ),
)
@arguments.PLAN
@click.option("--dry-run", is_flag=True, help="Only say where it would go on.")
@EFFECTS
@click.option(
    "--rebuild",
    is_flag=True,
    help="Make sandboxes that are gone or unusable again from their snapshots first.",
)
@click.option("--ours", is_flag=True, help="Where a child conflicts, keep what is merged already.")
@click.option("--theirs", is_flag=True, help="Where a child conflicts, take what the child made.")
@click.option(
    "--edit",
    is_flag=True,
    help="Write yourself, in $EDITOR, what becomes of both sides. With --ours or --theirs: that for"
    " what is no text.",
)
@click.pass_obj
def resume(app: App, plan_id: str, effects: str | None, **flags: bool) -> None:
    """Go on with a plan from its last finished step.

    Children whose results are missing run again, on top of what is merged. Where one conflicts, a
    side can be chosen instead; then it does not run again.
    """
    if flags["ours"] and flags["theirs"]:
        raise click.UsageError("--ours and --theirs exclude each other")
    if flags["dry_run"] and flags["rebuild"]:
        raise click.UsageError("--dry-run changes nothing, and so it makes no sandbox again")
    wanted, choice = app.plan(plan_id), chosen(effects)
    if flags["dry_run"]:
        service = app.container.plan_resume_service
        app.show(views.resume_point(service.preview(wanted, choice)))
        return
    side = Side.OURS if flags["ours"] else Side.THEIRS if flags["theirs"] else None
    resolution = UNDECIDED if side is None else Resolution(side=side)
    if flags["edit"]:
        resolution = _edited(app, wanted, side)
    run(app, wanted, choice, resolution, rebuild=flags["rebuild"])


def _edited(app: App, plan_id: PlanId, side: Side | None) -> Resolution:
    """What a person made of each text; nothing has changed when this is given up."""
    app.refuse_without_terminal("--edit", "take a side with --ours or --theirs")
    drafts = app.container.subplan_conflicts.drafts(plan_id)
    if drafts.others and side is None:
        names = ", ".join(f"{conflict} of {child.name}" for child, conflict in drafts.others)
        raise UsageError(
            f"no text, and so not to be edited: {names}",
            "add --ours or --theirs, which is taken for these",
        )
    texts = {
        (d.child.plan_id, d.conflict.resource, d.conflict.path): edited(
            d.text, conflict_title(d.child, d.conflict)
        )
        for d in drafts.texts
    }
    return Resolution(side=side, edited=texts)
