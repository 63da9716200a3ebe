"""`agents log` and `agents diff`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command


@command("agents log", "agents log --all", "agents log hello-3")
@arguments.PLAN
@click.option("--all", "unfolded", is_flag=True, help="Every group of each step, and why it is.")
@click.pass_obj
def log(app: App, plan_id: str | None, *, unfolded: bool) -> None:
    """Show the steps of a plan, the newest first, and which one it stands at.

    What was undone and can be redone is there too, marked. JSON is that of `agents plan checkpoint
    list`: every checkpoint, the oldest first.
    """
    from cleveragents.cli.views import checkpoints as views  # noqa: PLC0415 - not for `--help`

    found = app.container.plan_queries.log(app.plan(plan_id))
    app.show(views.listed(found, unfolded=unfolded))


@command("agents diff", "agents diff 2", "agents diff 'check it' --plan hello-3")
@arguments.MAYBE_STEP
@arguments.OF_PLAN
@click.pass_obj
def diff(app: App, decision_id: str | None, plan_id: str | None) -> None:
    """Show what applying the plan would change; with a step, what that step has changed.

    The answers are those of `agents plan diff` and `agents plan show`.
    """
    from cleveragents.cli.views import plans as views  # noqa: PLC0415 - not for `--help`
    from cleveragents.cli.views import steps as step_views  # noqa: PLC0415
    from cleveragents.cli.words_given import decision  # noqa: PLC0415

    if decision_id is not None:
        app.show(
            step_views.shown(app.container.step_service.show(decision(app, decision_id, plan_id)))
        )
        return
    wanted = app.plan(plan_id)
    app.show(views.diff(wanted, app.container.plan_diff_service.diff(wanted)))
