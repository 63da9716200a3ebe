"""`agents undo` and `agents redo`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.commands.everyday import in_place
from cleveragents.cli.framework import AgentsCommand, examples
from cleveragents.cli.views import applied_changes as applies
from cleveragents.cli.views import everyday as views
from cleveragents.domain.errors import PlanLockedError

if TYPE_CHECKING:
    from cleveragents.application.services.apply.moves import MoveQuestion
    from cleveragents.application.services.rollback.target import RollbackQuestion
    from cleveragents.application.services.rollback.undo_service import Way
    from cleveragents.domain.ids import PlanId

_MANY = click.option(
    "-n",
    "--changes",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    help="So many at once.",
)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Only show what would change.")


class CountedCommand(AgentsCommand):
    """It takes a count and no name: `undo 3` might be three steps, the third, or back to it."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            word, name = self.name, rest[0]
            raise click.UsageError(
                f"`agents {word}` takes no name; so many at once: `agents {word} -n {name}`,"
                f" to a certain state: `agents rewind {name}`",
                ctx,
            )
        return rest


@click.command(
    cls=CountedCommand,
    epilog=examples("agents undo", "agents undo -n 3", "agents undo --dry-run"),
)
@arguments.OF_PLAN
@_MANY
@_DRY_RUN
@in_place.KEEP
@in_place.NOW
@arguments.YES
@click.pass_obj
def undo(app: App, plan_id: str | None, changes: int, **flags: bool) -> None:
    """Take back the last step that changed something; again: one further back.

    What is there now becomes a checkpoint first, so nothing is lost: `agents redo` brings it back.
    Files and databases of the sandboxes go back; your project is touched only where the run was
    `--in-place`. It asks where something outside the sandboxes would be taken back as well, or
    what others have changed in place.

    Once the plan is applied, it takes the apply back, after a question: your project becomes what
    it was before, where nobody has changed the same files since. See `apply.keep`.
    """
    _go(app, plan_id, "undo", changes, flags)


@click.command(
    cls=CountedCommand,
    epilog=examples("agents redo", "agents redo -n 3"),
)
@arguments.OF_PLAN
@_MANY
@_DRY_RUN
@in_place.KEEP
@in_place.NOW
@arguments.YES
@click.pass_obj
def redo(app: App, plan_id: str | None, changes: int, **flags: bool) -> None:
    """Bring back what was undone last; again: one further forward.

    Nothing runs again: the files become what they were. Once something else was done there is
    nothing to redo; what was undone before is still there, see `agents log --all`. An apply that
    was undone is brought into your project again.
    """
    _go(app, plan_id, "redo", changes, flags)


def _go(app: App, plan_id: str | None, word: str, changes: int, flags: Mapping[str, bool]) -> None:
    # Not for `--help`.
    from cleveragents.application.services.rollback.undo_service import Way  # noqa: PLC0415

    way, wanted = Way(word), app.plan(plan_id)
    project = app.project(wanted)
    if app.container.apply_moves.concerns(wanted):
        _move_apply(app, wanted, way, changes, dry_run=flags["dry_run"], yes=flags["yes"])
        return
    if flags["dry_run"]:
        app.show(views.foreseen(app.container.undo_service.preview(wanted, way, changes), project))
        return

    def confirm(question: "RollbackQuestion") -> bool:
        """What the safety group holds is not lost; what is outside the sandboxes might be."""
        if not in_place.agreed(app, question, keep=flags["keep"], yes=flags["yes"]):
            return False
        if not question.effects.compensated:
            return True
        return app.confirm(
            f"{word.capitalize()}, and take back what was done outside the sandboxes of {project}",
            yes=flags["yes"],
            show=lambda: views.outside(question.effects),
        )

    with app.working() as container:
        if flags["now"]:
            container.plan_service.stop(wanted)
        try:
            moved = container.undo_service.go(wanted, way, changes, confirm, keep=flags["keep"])
        except PlanLockedError as error:
            raise error.stoppable() from None
        safety, target = moved.result.undo_group.group_id, moved.result.group.group_id
        found, left = container.step_service.tables(wanted, safety, target), moved.result.left
        # Of a database that was left as it is, nothing has gone back.
        tables = {n: t for n, t in found.items() if not any(x.startswith(f"{n}:") for x in left)}
    app.report(views.moved(moved, project, tables))


def _move_apply(
    app: App, plan_id: "PlanId", way: "Way", changes: int, *, dry_run: bool, yes: bool
) -> None:
    """Of a plan that is applied, what can be undone and redone is the apply."""
    project = app.project(plan_id)
    if dry_run:
        found = app.container.apply_moves.preview(plan_id, way, changes)
        app.show(applies.foreseen(found, project))
        return

    def confirm(question: "MoveQuestion") -> bool:
        return app.confirm(
            applies.question(question, project),
            yes=yes,
            show=lambda: applies.foreseen(question, project),
        )

    with app.working() as container:
        moved = container.apply_moves.go(plan_id, way, changes, confirm)
    app.report(applies.moved(moved, project))
