"""`agents plan list`."""

import click

from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import plan_list as views
from cleveragents.domain.ages import moment
from cleveragents.domain.plan import Phase, State
from cleveragents.domain.plan_filter import EVERY_PLAN, PlanFilter

# As the list spells them, beside the exact states. A plan that is new waits too.
_WORDS = {
    "waiting": State.QUEUED,
    "running": State.PROCESSING,
    "finished": State.COMPLETE,
    "failed": State.ERRORED,
    "held up": State.CONSTRAINED,
}
_STATES = [*(state.value for state in State), *_WORDS]


@command(
    "agents plan list --here",
    "agents plan list --state failed --state waiting --since 14d",
    "agents plan list --all --format json",
    name="list",
)
@click.option("--all", "children", is_flag=True, help="Also child plans, below their parents.")
@click.option("--here", is_flag=True, help="Only those of the place you are in.")
@click.option(
    "--phase",
    "phases",
    type=click.Choice([phase.value for phase in Phase]),
    multiple=True,
    help="Only those in this phase. May be repeated, as may --state and --action.",
)
@click.option(
    "--state",
    "states",
    type=click.Choice(_STATES),
    multiple=True,
    metavar="STATE",
    help=f"Only those in this state: {', '.join(_STATES)}.",
)
@click.option("--action", "actions", metavar="NAME", multiple=True, help="Only those of it.")
@click.option(
    "--since", metavar="AGE", help="Only those made since then: 90m, 12h, 14d, 2w, or a date."
)
@click.pass_obj
def list_plans(
    app: App,
    phases: tuple[str, ...],
    states: tuple[str, ...],
    actions: tuple[str, ...],
    since: str | None,
    *,
    children: bool,
    here: bool,
) -> None:
    """List all plans, the newest first, and say where each belongs."""
    only = PlanFilter(
        phases=tuple(Phase(name) for name in phases),
        states=tuple(_WORDS.get(name) or State(name) for name in states),
        actions=actions,
        since=moment(since, "--since", app.started) if since else None,
    )
    found = app.container.plan_queries.list(children=children, only=only)
    app.show(views.listed(found.here if here else found, some=only != EVERY_PLAN or here))
