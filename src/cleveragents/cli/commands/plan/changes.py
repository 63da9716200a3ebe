"""`agents plan diff` and `agents plan apply`."""

from typing import TYPE_CHECKING

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import plans as views
from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.conflicts import Side
from cleveragents.domain.plan import Plan

if TYPE_CHECKING:
    from cleveragents.application.services.apply.apply_service import ApplyQuestion
    from cleveragents.container import Container

_LONGEST_TITLE = 72


@command("agents plan diff <PLAN_ID>", "agents plan diff --correction <CORRECTION_ID>")
@arguments.PLAN
@click.option(
    "--correction", metavar="CORRECTION_ID", help="Compare with the state before a correction."
)
@click.pass_obj
def diff(app: App, plan_id: str | None, correction: str | None) -> None:
    """Show what applying the plan would change in the project."""
    service = app.container.plan_diff_service
    if correction is None:
        wanted = app.plan(plan_id)
        app.show(views.diff(wanted, service.diff(wanted)))
        return
    of = app.plan(plan_id) if plan_id else None
    found = service.diff_of_correction(correction, of)
    app.show(views.diff(found.plan_id, found.diffs))


@command(
    "agents plan diff latest && agents plan apply latest",
    "agents plan apply --no-commit --yes <PLAN_ID>",
    "agents plan apply --yes --branch agents/login <PLAN_ID>",
    "agents plan apply --with-ignored node_modules latest",
)
@arguments.PLAN
@arguments.YES
@click.option("--no-commit", is_flag=True, help="Leave the changes in the working tree.")
@click.option(
    "--branch",
    metavar="NAME",
    type=arguments.AS_IT_IS,
    help="Commit on a new branch; touch nothing else.",
)
@click.option("--ours", is_flag=True, help="Where commits dispute it, keep what the project has.")
@click.option("--theirs", is_flag=True, help="Where commits dispute it, take what the plan made.")
@click.option("--message", "-m", metavar="TEXT", help="The commit message.")
@click.option(
    "--with-ignored",
    "with_ignored",
    metavar="PATH",
    multiple=True,
    type=arguments.AS_IT_IS,
    help="Bring what was changed in this ignored folder or file too; may be said again.",
)
@click.option(
    "--as-it-is",
    is_flag=True,
    help="Take what is there as the result, also if the program has failed or was cut off.",
)
@click.pass_obj
def apply(
    app: App,
    plan_id: str | None,
    branch: str | None,
    message: str | None,
    with_ignored: tuple[str, ...],
    *,
    yes: bool,
    no_commit: bool,
    as_it_is: bool,
    **sides: bool,
) -> None:
    """Bring the plan's result into the project: all of it, or nothing.

    Where commits made since then change the same lines, nothing is applied; --ours or --theirs says
    whose lines to take there. What nobody disputes of a file comes from both.
    """
    if no_commit and branch:
        raise click.UsageError("--no-commit and --branch exclude each other")
    if branch and with_ignored:
        raise click.UsageError("--branch touches no files, and --with-ignored changes some")
    wanted = app.container.plan_finder.get(app.plan(plan_id))
    options = ApplyOptions(
        message=message or commit_message(wanted),
        branch=branch,
        commit=not no_commit,
        with_ignored=with_ignored,
        side=_side(**sides),
    )
    project = app.project(wanted.plan_id)

    def confirm(question: "ApplyQuestion") -> bool:
        return app.confirm(
            views.apply_question(question, project),
            yes=yes,
            show=lambda: views.apply_preview(question, project),
        )

    with app.working() as container:
        _taken(container, wanted, as_it_is=as_it_is)
        result = container.apply_service.apply(wanted.plan_id, options, confirm)
    app.report(views.applied(result, project))


def _taken(container: "Container", wanted: Plan, *, as_it_is: bool) -> None:
    """What is there becomes the result, where somebody has said or chosen that."""
    if as_it_is or wanted.is_result:
        container.plan_resume_service.accept(wanted.plan_id)
    elif not wanted.executed and not wanted.is_final:
        container.plan_resume_service.accept_finished(wanted.plan_id)


def _side(*, ours: bool, theirs: bool) -> Side | None:
    if ours and theirs:
        raise click.UsageError("--ours and --theirs exclude each other")
    return Side.OURS if ours else Side.THEIRS if theirs else None


def commit_message(wanted: Plan) -> str:
    """One line for the log: which plan, and what for. All of what it was for if that is longer, and
    last the plan's whole id, for whoever looks for it by that."""
    words = wanted.action.description.strip()
    first, _, more = words.partition("\n")
    title = f"{wanted.name}: {first}" if first else f"{wanted.name}: applied"
    short = title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"
    body = f"{words}\n\n" if more or short != title else ""
    return f"{short}\n\n{body}Plan: {wanted.plan_id}"
