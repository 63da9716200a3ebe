"""`agents rewind`."""

from typing import TYPE_CHECKING

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.commands.everyday import in_place
from cleveragents.cli.framework import command
from cleveragents.cli.views import rollbacks as views

if TYPE_CHECKING:
    from cleveragents.application.services.plans.plan_queries import PlanTimeline
    from cleveragents.application.services.rollback.target import RollbackQuestion
    from cleveragents.cli.picker.state import PickerRow, Preview
    from cleveragents.container import Container


@command("agents rewind", "agents rewind 2", "agents rewind 'before the migration'")
@arguments.checkpoint()
@arguments.OF_PLAN
@in_place.KEEP
@in_place.NOW
@arguments.YES
@click.pass_obj
def rewind(app: App, checkpoint_id: str | None, plan_id: str | None, **flags: bool) -> None:
    """Pick a step on the screen, look at what going there would change, and go.

    Keys: arrows or j and k, / to search, Enter for a preview, r to restore, q to leave. With a name
    it is `agents plan rollback`; without a terminal there must be one.
    """
    wanted = app.plan(plan_id)
    project = app.project(wanted)

    def confirm(question: "RollbackQuestion") -> bool:
        target, yes = question.target, flags["yes"]
        if not in_place.agreed(app, question, keep=flags["keep"], yes=yes):
            return False
        return app.confirm(
            f"Roll back to {target.group_id} ({target.label}), in {views.where(question, project)}",
            yes=yes or picks,  # which was asked for below its preview
            show=lambda: views.previewed(question.preview, project),
        )

    with app.working() as container:
        if flags["now"]:
            container.plan_service.stop(wanted)
        found = container.plan_queries.log(wanted)
        picks = checkpoint_id is None and app.is_watched and bool(found.groups)
        if picks:
            found.plan.refuse_if_final()
            checkpoint_id = _picked(app, container, found)
        if picks and checkpoint_id is None:
            return
        result = container.rollback_service.rollback(
            wanted, checkpoint_id, confirm, keep=flags["keep"]
        )
    app.report(views.rolled_back(result, project))


def _picked(app: App, container: "Container", found: "PlanTimeline") -> str | None:
    """The id of a group that a person has chosen; None if they have left."""
    from cleveragents.cli.picker import previewing  # noqa: PLC0415 - at a terminal only
    from cleveragents.cli.picker.rows import picker  # noqa: PLC0415
    from cleveragents.cli.picker.terminal import pick  # noqa: PLC0415
    from cleveragents.domain.errors import PlanError  # noqa: PLC0415
    from cleveragents.domain.ids import GroupId  # noqa: PLC0415

    plan_id = found.plan.plan_id

    def look(row: "PickerRow") -> "Preview":
        try:
            preview = container.rollback_service.preview(plan_id, row.target)
            stands_on = GroupId(found.plan.head or row.target)
            tables = container.step_service.tables(plan_id, stands_on, preview.group.group_id)
            app.still()
        except PlanError as error:
            return previewing.refused(row, app.spelled(error))
        return previewing.previewed(row, preview, tables)

    return pick(picker(found), look, colours=app.has_colours)
