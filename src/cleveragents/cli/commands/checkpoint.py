"""`agents plan checkpoint …`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.views import checkpoints as views
from cleveragents.cli.views.words import count
from cleveragents.cli.words_given import plan_and_checkpoint, sure_checkpoint


@click.group("checkpoint", cls=LazyGroup)
def checkpoint() -> None:
    """List, show, create, prune, delete, verify and compare checkpoints."""


@checkpoint.command(
    "list", epilog=examples("agents plan checkpoint list", "agents plan checkpoint list hello-3")
)
@arguments.PLAN
@click.option("--all", "unfolded", is_flag=True, help="Every group of each step, and why it is.")
@click.pass_obj
def list_checkpoints(app: App, plan_id: str | None, *, unfolded: bool) -> None:
    """List the steps of a plan that one can go back to, the newest first.

    JSON has every checkpoint, the oldest first.
    """
    found = app.container.plan_queries.timeline(app.plan(plan_id))
    app.show(views.listed(found, unfolded=unfolded))


@checkpoint.command(
    epilog=examples("agents plan checkpoint show 2", "agents plan checkpoint show hello-3 -1")
)
@arguments.PLAN_BEFORE_CHECKPOINT
@arguments.checkpoint()
@click.pass_obj
def show(app: App, plan_id: str | None, checkpoint_id: str | None) -> None:
    """Show one checkpoint group with everything in it."""
    service = app.container.checkpoint_service
    plan, wanted = sure_checkpoint(app, plan_id, checkpoint_id)
    app.show(views.shown(service.get_checkpoint(plan, wanted)))


@checkpoint.command(epilog=examples("agents plan checkpoint create --label 'before the migration'"))
@arguments.PLAN
@click.option("--label", metavar="TEXT", required=True, help="A name to go back to it by.")
@click.pass_obj
def create(app: App, plan_id: str | None, label: str) -> None:
    """Make a checkpoint by hand; retention never prunes it."""
    with app.working() as container:
        group = container.manual_checkpoints.create(app.plan(plan_id), label)
    app.report(views.created(group))


@checkpoint.command(epilog=examples("agents plan checkpoint delete 'before the migration'"))
@arguments.PLAN_BEFORE_CHECKPOINT
@arguments.checkpoint()
@arguments.YES
@click.pass_obj
def delete(app: App, plan_id: str | None, checkpoint_id: str | None, *, yes: bool) -> None:
    """Delete a checkpoint group for good, and free what only it needed."""
    plan, name = sure_checkpoint(app, plan_id, checkpoint_id)
    wanted = app.container.checkpoint_service.get_checkpoint(plan, name)
    app.require(f"Delete {wanted.group_id} ({wanted.label})", yes=yes)
    group, freed = app.container.manual_checkpoints.delete(plan, wanted.group_id)
    app.report(views.deleted(group, freed))


@checkpoint.command(epilog=examples("agents plan checkpoint prune --dry-run"))
@arguments.PLAN
@arguments.YES
@click.option("--dry-run", is_flag=True, help="Only say which would go, and why.")
@click.pass_obj
def prune(app: App, plan_id: str | None, *, yes: bool, dry_run: bool) -> None:
    """Delete the checkpoints that are beyond the limits, and free their room."""
    plan, service = app.plan(plan_id), app.container.manual_checkpoints
    found = service.explain_retention(plan)
    gone = len(found.decision.removed)
    if dry_run:
        app.show(views.pruned(plan, found, None))
        return
    app.require(
        f"Prune {count(gone, 'checkpoint')}",
        yes=yes or not gone,
        show=lambda: views.pruned(plan, found, None),
    )
    app.report(views.pruned(plan, *service.prune(plan)))


@checkpoint.command(
    epilog=examples("agents plan checkpoint verify", "agents plan checkpoint verify hello-3 2")
)
@arguments.PLAN_BEFORE_CHECKPOINT
@arguments.checkpoint(metavar="[CHECKPOINT_ID]")
@click.pass_obj
def verify(app: App, plan_id: str | None, checkpoint_id: str | None) -> None:
    """Prove by hash that a checkpoint, or every one, can be restored."""
    service = app.container.checkpoint_service
    plan, wanted = plan_and_checkpoint(app, plan_id, checkpoint_id)
    groups = (
        service.list_checkpoints(plan) if wanted is None else [service.get_checkpoint(plan, wanted)]
    )
    app.show(views.verified(plan, groups, service.damages(groups)))


@checkpoint.command(
    epilog=examples("agents plan checkpoint diff 0 2", "agents plan checkpoint diff hello-3 -1 2")
)
@arguments.PLAN_BEFORE_CHECKPOINT
@arguments.checkpoint("old", "FROM")
@arguments.checkpoint("new", "TO")
@click.pass_obj
def diff(app: App, plan_id: str | None, old: str | None, new: str | None) -> None:
    """Show which files differ between two checkpoints."""
    service = app.container.checkpoint_service
    plan_id, old, new = (plan_id, old, new) if new is not None else (None, plan_id, old)
    if old is None or new is None:
        raise click.UsageError("say which two checkpoints to compare: FROM and TO")
    plan = app.plan(plan_id)
    before, after = service.get_checkpoint(plan, old), service.get_checkpoint(plan, new)
    app.show(views.compared(before, after, service.changes_between(before, after)))
