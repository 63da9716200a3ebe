"""`agents plan tree`, `explain`, `artifacts`, `errors` and `effects`: what was decided and done."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import command
from cleveragents.cli.views import decision_tree
from cleveragents.cli.views import decisions as views
from cleveragents.cli.views import effects as effect_views
from cleveragents.cli.views import steps as step_views
from cleveragents.cli.words_given import decision


@command("agents plan tree latest", "agents plan tree --show-superseded <PLAN_ID>")
@arguments.PLAN
@click.option("--show-superseded", is_flag=True, help="Also what no longer counts.")
@click.pass_obj
def tree(app: App, plan_id: str | None, *, show_superseded: bool) -> None:
    """Show the plan's decisions and the checkpoint of each."""
    history = app.container.plan_queries.history(app.plan(plan_id))
    app.show(decision_tree.tree(history, show_superseded=show_superseded))


@command(
    "agents plan explain <DECISION_ID>",
    "agents plan explain --show-context --show-reasoning <DECISION_ID>",
)
@arguments.DECISION
@arguments.OF_PLAN
@click.option("--show-context", is_flag=True, help="Also what was known when it was made.")
@click.option("--show-reasoning", is_flag=True, help="Also what was weighed, and why this won.")
@click.pass_obj
def explain(
    app: App, decision_id: str, plan_id: str | None, *, show_context: bool, show_reasoning: bool
) -> None:
    """Show why a decision was made and what came of it. JSON has all of it in any case."""
    found = app.container.plan_queries.explain(decision(app, decision_id, plan_id))
    app.show(views.explained(found, context=show_context, reasoning=show_reasoning))


@command("agents plan show 2", "agents plan show 'check it' --plan hello-3")
@arguments.STEP
@arguments.OF_PLAN
@click.pass_obj
def show(app: App, decision_id: str, plan_id: str | None) -> None:
    """Show one step: when it ran, with what, what it said and what it changed."""
    found = app.container.step_service.show(decision(app, decision_id, plan_id))
    app.show(step_views.shown(found))


@command("agents plan artifacts <PLAN_ID>")
@arguments.PLAN
@click.pass_obj
def artifacts(app: App, plan_id: str | None) -> None:
    """Show what each step wrote and said."""
    app.show(views.artifacts(app.container.plan_queries.record(app.plan(plan_id))))


@command("agents plan errors <PLAN_ID>")
@arguments.PLAN
@click.pass_obj
def errors(app: App, plan_id: str | None) -> None:
    """Show what failed, and what to do about it."""
    app.show(views.errors(app.container.plan_queries.failures(app.plan(plan_id))))


@command("agents plan effects <PLAN_ID>")
@arguments.PLAN
@click.pass_obj
def effects(app: App, plan_id: str | None) -> None:
    """Show what the steps have done outside their sandboxes, and what is known of it."""
    app.show(effect_views.ledger(app.container.plan_queries.effects(app.plan(plan_id))))
