"""What a shell offers when Tab is pressed, and the script that makes it ask us.

A shell asks while somebody types, so nothing here may print, make a database, or fail.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
)

from cleveragents.cli.app import App
from cleveragents.cli.framework import means_any_place
from cleveragents.cli.views.words import state_word
from cleveragents.config import KEYS, ConfigProblem
from cleveragents.domain.action import step_number
from cleveragents.domain.decision import DecisionType
from cleveragents.domain.errors import PlanError
from cleveragents.domain.ids import PlanId, endings

VARIABLE = "_AGENTS_COMPLETE"
MOST = 50
_SPECIAL = re.compile(r"([^\w@%+=:,./-])", re.ASCII)


# Labels have spaces and colons in them: the first are escaped by us, and `read -r` leaves them so;
# at the second bash would split the word.
_BASH = r"""COMP_WORDBREAKS=${COMP_WORDBREAKS//:}

%(complete_func)s() {
    local IFS=$'\n' kind value line
    COMPREPLY=()
    for line in $(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \
        %(complete_var)s=bash_complete "$1"); do
        IFS=, read -r kind value <<< "$line"
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
        esac
    done
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(BashComplete):
    source_template = _BASH

    @staticmethod
    def _check_version() -> None:
        """click would start a bash to ask for its version; anything since 2016 will do."""

    def format_completion(self, item: CompletionItem) -> str:
        value = _SPECIAL.sub(r"\\\1", str(item.value)) if item.type == "plain" else item.value
        return f"{item.type},{value}"


SHELLS: Mapping[str, type[ShellComplete]] = {"bash": Bash, "zsh": ZshComplete, "fish": FishComplete}


def script(shell: str, root: click.Command) -> str:
    """What the shell has to run once, so that it asks us from then on."""
    return SHELLS[shell](root, {}, "agents", VARIABLE).source()


def answer(root: click.Command, instruction: str) -> int:
    """What a shell asks for, such as `bash_complete`; the words typed are in the environment."""
    if instruction.endswith("_complete") and not _is_a_question(instruction):
        return 1
    add_completion_class(Bash, "bash")
    return shell_complete(root, {}, "agents", VARIABLE, instruction)


def _is_a_question(instruction: str) -> bool:
    """Whether a shell asks; click would stop with a traceback where something of it is missing."""
    words, at = os.environ.get("COMP_WORDS"), os.environ.get("COMP_CWORD")
    if words is None or at is None:
        return False
    return instruction.startswith("fish") or (at.isascii() and at.isdecimal())


def offered(kind: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    if kind == "files":
        return [CompletionItem(incomplete, type="file")]
    try:
        with ctx.scope(cleanup=False):  # what was typed before, `--any` for one, counts
            found = [*_OFFERS[kind](ctx)]
    except (PlanError, ConfigProblem, OSError):
        return []  # the command itself will say what is wrong
    fitting = [item for item in found if str(item.value).lower().startswith(incomplete.lower())]
    return fitting[:MOST]


def _plans(ctx: click.Context) -> Iterator[CompletionItem]:
    app = _app(ctx)
    if app is None:
        return
    listed = app.container.plan_queries.list()
    if means_any_place(ctx):
        yield CompletionItem("latest", help="the last plan made anywhere")
    elif listed.latest:
        yield CompletionItem("latest", help="the last plan made of this place")
    # Names of other places need --any, and so does their completion.
    for plan in listed.plans if means_any_place(ctx) else listed.here.plans:
        yield CompletionItem(plan.name, help=f"{state_word(plan)}, {listed.project(plan) or '-'}")


def _checkpoints(ctx: click.Context) -> Iterator[CompletionItem]:
    """By number, the newest first; what has none by its label, or the end of its id where that is
    there twice; then the labels of all that is folded."""
    app = _app(ctx)
    if app is None:
        return
    rows = app.container.checkpoint_service.timeline(_plan_typed(app, ctx)).rows
    groups = [group for row in rows for group in row.groups]
    labels = [group.label for group in groups]
    short = endings(group.group_id for group in groups)
    numbered = [row for row in reversed(rows) if row.number is not None and row.group is not None]
    for row in numbered:
        yield CompletionItem(str(row.number), help=row.name)
    for row in reversed(rows):
        if row.number is None and row.group is not None:
            once = labels.count(row.group.label) == 1
            value = row.group.label if once else short[row.group.group_id]
            yield CompletionItem(value, help=row.name)
    folded = [group for row in numbered for group in reversed(row.groups)]
    for group in folded:
        if labels.count(group.label) == 1:
            yield CompletionItem(group.label, help=short[group.group_id])


def _plan_typed(app: App, ctx: click.Context) -> PlanId:
    """The first word is the plan, unless that is left out."""
    typed = ctx.params.get("plan_id")
    try:
        return app.plan(None if typed is None else str(typed))
    except PlanError:
        return app.plan(None)


def _plans_or_checkpoints(ctx: click.Context) -> Iterator[CompletionItem]:
    with suppress(PlanError):  # there may be no latest plan here
        yield from _checkpoints(ctx)
    yield from _plans(ctx)


def _decisions(ctx: click.Context) -> Iterator[CompletionItem]:
    """Those of the plan that count, the newest first: by the number of their step, or the end of
    their id."""
    app = _app(ctx)
    if app is None:
        return
    history = app.container.plan_queries.history(_plan_typed(app, ctx))
    short = endings(decision.decision_id for decision in history.decisions)
    for decision in reversed(history.decisions):
        if not decision.superseded:
            said = decision.type is DecisionType.USER_INTERVENTION
            index = None if said else decision.step_index
            value = short[decision.decision_id] if index is None else str(step_number(index))
            yield CompletionItem(value, help=decision.chosen)


def _keys(ctx: click.Context) -> Iterator[CompletionItem]:
    del ctx
    for key in KEYS:
        yield CompletionItem(key.name, help=key.doc)


def _tools(ctx: click.Context) -> Iterator[CompletionItem]:
    app = _app(ctx, needs_plans=False)
    if app is not None:
        for spec in app.container.tools.specs(None):
            yield CompletionItem(spec.name, help=spec.description)


_OFFERS: Mapping[str, Callable[[click.Context], Iterator[CompletionItem]]] = {
    "plans": _plans,
    "checkpoints": _checkpoints,
    "plans or checkpoints": _plans_or_checkpoints,
    "decisions": _decisions,
    "keys": _keys,
    "tools": _tools,
}


def _app(ctx: click.Context, *, needs_plans: bool = True) -> App | None:
    """None if there is no plan yet, and so nothing to look for."""
    given = ctx.find_root().params
    app = App()
    app.use_options(data_dir=given.get("data_dir"), config_path=given.get("config_path"), verbose=0)
    settings = app.settings.settings
    if needs_plans and not settings.database_url:
        return app if Path(settings.data_dir, "cleveragents.db").exists() else None
    return app
