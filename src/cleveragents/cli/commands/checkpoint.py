"""`agents plan checkpoint …`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.views import checkpoints as views
from cleveragents.cli.views.words import count


@click.group("checkpoint", cls=LazyGroup)
def checkpoint() -> None:
    """List, show, create, prune, delete, verify and compare checkpoints."""


@checkpoint.command("list", epilog=examples("agents plan checkpoint list <PLAN_ID>"))
@arguments.PLAN
@click.pass_obj
def list_checkpoints(app: App, plan_id: str) -> None:
    """List the checkpoints of a plan, the oldest first."""
    groups = app.container.checkpoint_service.list_checkpoints(app.plan(plan_id))
    app.show(views.listed(app.container.plan_queries.get(app.plan(plan_id)), groups))


@checkpoint.command(epilog=examples("agents plan checkpoint show <PLAN_ID> <CHECKPOINT_ID>"))
@arguments.PLAN
@arguments.checkpoint()
@click.pass_obj
def show(app: App, plan_id: str, checkpoint_id: str) -> None:
    """Show one checkpoint group with everything in it."""
    service = app.container.checkpoint_service
    app.show(views.shown(service.get_checkpoint(app.plan(plan_id), checkpoint_id)))


@checkpoint.command(
    epilog=examples("agents plan checkpoint create --label 'before the migration' <PLAN_ID>")
)
@arguments.PLAN
@click.option("--label", metavar="TEXT", required=True, help="A name to go back to it by.")
@click.pass_obj
def create(app: App, plan_id: str, label: str) -> None:
    """Make a checkpoint by hand; retention never prunes it."""
    if not label.strip():
        raise click.UsageError("--label must not be empty")
    with app.working() as container:
        group = container.manual_checkpoints.create(app.plan(plan_id), label.strip())
    app.report(views.created(group))


@checkpoint.command(epilog=examples("agents plan checkpoint delete <PLAN_ID> <CHECKPOINT_ID>"))
@arguments.PLAN
@arguments.checkpoint()
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete(app: App, plan_id: str, checkpoint_id: str, *, yes: bool) -> None:
    """Delete a checkpoint group for good, and free what only it needed."""
    service = app.container.checkpoint_service
    wanted = service.get_checkpoint(app.plan(plan_id), checkpoint_id)
    app.require(f"Delete {wanted.group_id} ({wanted.label})", yes=yes)
    group, freed = app.container.manual_checkpoints.delete(app.plan(plan_id), wanted.group_id)
    app.report(views.deleted(group, freed))


@checkpoint.command(epilog=examples("agents plan checkpoint prune --dry-run <PLAN_ID>"))
@arguments.PLAN
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say which would go, and why.")
@click.pass_obj
def prune(app: App, plan_id: str, *, yes: bool, dry_run: bool) -> None:
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


@checkpoint.command(epilog=examples("agents plan checkpoint verify <PLAN_ID>"))
@arguments.PLAN
@arguments.checkpoint(metavar="[CHECKPOINT_ID]", required=False)
@click.pass_obj
def verify(app: App, plan_id: str, checkpoint_id: str | None) -> None:
    """Prove by hash that a checkpoint, or every one, can be restored."""
    service, plan = app.container.checkpoint_service, app.plan(plan_id)
    groups = (
        [service.get_checkpoint(plan, checkpoint_id)]
        if checkpoint_id
        else service.list_checkpoints(plan)
    )
    app.show(views.verified(plan, groups, service.damages(groups)))


@checkpoint.command(epilog=examples("agents plan checkpoint diff <PLAN_ID> <FROM> <TO>"))
@arguments.PLAN
@arguments.checkpoint("old", "FROM")
@arguments.checkpoint("new", "TO")
@click.pass_obj
def diff(app: App, plan_id: str, old: str, new: str) -> None:
    """Show which files differ between two checkpoints."""
    service = app.container.checkpoint_service
    before = service.get_checkpoint(app.plan(plan_id), old)
    after = service.get_checkpoint(app.plan(plan_id), new)
    app.show(views.compared(before, after, service.changes_between(before, after)))
