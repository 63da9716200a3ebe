"""`agents plan resume`: going on, and what a person decides about conflicts of children."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.commands.plan.execute import EFFECTS, chosen, run
from cleveragents.cli.editor import edited
from cleveragents.cli.framework import command
from cleveragents.cli.views import resuming as views
from cleveragents.cli.views.conflicts import conflict_title
from cleveragents.domain.conflicts import (
    UNDECIDED,
    Choice,
    ConflictKey,
    Resolution,
    Side,
)
from cleveragents.domain.conflicts import (
    chosen as chosen_for,
)
from cleveragents.domain.errors import UsageError
from cleveragents.domain.ids import PlanId

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _one_of_them(choice: str, what: str) -> Callable[[_Command], _Command]:
    return click.option(
        f"--{choice}-for",
        metavar="PATH",
        type=arguments.AS_IT_IS,
        multiple=True,
        help=f"For this file, or what is below this folder: {what}. May be repeated.",
    )


@command(
    "agents plan resume --dry-run <PLAN_ID>",
    "agents plan resume --effects skip <PLAN_ID>",
    "agents plan resume --theirs <PLAN_ID>",
    "agents plan resume --edit <PLAN_ID>",
    "agents plan resume --theirs --ours-for README.md --edit-for src/app.py",
    "agents plan resume --rebuild <PLAN_ID>",
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
@_one_of_them("ours", "keep what is merged already")
@_one_of_them("theirs", "take what the child made")
@_one_of_them("edit", "write yourself what becomes of both sides")
@click.pass_obj
def resume(
    app: App,
    plan_id: str | None,
    effects: str | None,
    ours_for: tuple[str, ...],
    theirs_for: tuple[str, ...],
    edit_for: tuple[str, ...],
    **flags: bool,
) -> None:
    """Go on with a plan from its last finished step.

    Children whose results are missing run again, on top of what is merged. Where one conflicts, a
    side can be chosen instead, for all conflicts or for each; then it does not run again.
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
    named = [(path, Choice.OURS) for path in ours_for]
    named += [(path, Choice.THEIRS) for path in theirs_for]
    named += [(path, Choice.EDIT) for path in edit_for]
    resolution = UNDECIDED if side is None else Resolution(side=side)
    if named:
        resolution = _one_by_one(app, wanted, named, side, edit=flags["edit"])
    elif flags["edit"]:
        resolution = Resolution(side=side, edited=_edited(app, wanted, lacks_side=side is None))
    run(app, wanted, choice, resolution, rebuild=flags["rebuild"])


def _one_by_one(
    app: App,
    plan_id: PlanId,
    named: Sequence[tuple[str, Choice]],
    rest: Side | None,
    *,
    edit: bool,
) -> Resolution:
    """A choice for each conflict; one without any is refused before anything changes."""
    waiting = app.container.subplan_conflicts.waiting(plan_id)
    choices = chosen_for(waiting, named)
    if edit:
        choices = {key: choices.get(key, Choice.EDIT) for key in waiting}
    left = [f"{key[1]}:{key[2]}" for key in waiting if key not in choices and rest is None]
    if left:
        raise UsageError(
            f"nothing is said about {', '.join(dict.fromkeys(left))}",
            "name them too, or add --ours or --theirs for all others",
        )
    to_edit = [key for key, choice in choices.items() if choice is Choice.EDIT]
    texts: Mapping[ConflictKey, bytes] = {}
    if to_edit:
        texts = _edited(app, plan_id, only=to_edit, lacks_side=rest is None)
    sides = {key: Side(choice) for key, choice in choices.items() if choice is not Choice.EDIT}
    return Resolution(side=rest, sides=sides, edited=texts)


def _edited(
    app: App,
    plan_id: PlanId,
    *,
    only: Sequence[ConflictKey] | None = None,
    lacks_side: bool,
) -> Mapping[ConflictKey, bytes]:
    """What a person made of each text; nothing has changed when this is given up."""
    app.refuse_without_terminal("--edit", "take a side with --ours or --theirs")
    drafts = app.container.subplan_conflicts.drafts(plan_id)
    others = [
        f"{conflict} of {child.name}"
        for child, conflict in drafts.others
        if only is None or (child.plan_id, conflict.resource, conflict.path) in only
    ]
    if others and lacks_side:
        raise UsageError(
            f"no text, and so not to be edited: {', '.join(others)}",
            "add --ours or --theirs, which is taken for these",
        )
    found: dict[ConflictKey, bytes] = {}
    for draft in drafts.texts:
        key = (draft.child.plan_id, draft.conflict.resource, draft.conflict.path)
        if only is None or key in only:
            found[key] = edited(draft.text, conflict_title(draft.child, draft.conflict))
    return found
