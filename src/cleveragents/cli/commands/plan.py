"""`agents plan …`: text in, one service call, a view out."""

from typing import TYPE_CHECKING

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.views import decision_tree
from cleveragents.cli.views import decisions as decision_views
from cleveragents.cli.views import effects as effect_views
from cleveragents.cli.views import plan_list as list_views
from cleveragents.cli.views import plans as plan_views
from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.confinement import Enforcement
from cleveragents.domain.conflicts import UNDECIDED, Resolution
from cleveragents.domain.effects import EffectChoice
from cleveragents.domain.errors import StepFailedError, SubplansFailedError
from cleveragents.domain.ids import CorrectionId, PlanId
from cleveragents.domain.plan import Plan, State

if TYPE_CHECKING:
    from cleveragents.application.services.apply.apply_service import ApplyQuestion
    from cleveragents.application.services.plans.plan_queries import PlanStatus

EFFECTS = click.option(
    "--effects",
    type=click.Choice([EffectChoice.REPEAT.value, EffectChoice.SKIP.value]),
    help="Repeat, or take as done, steps whose effect outside the sandboxes may be there already.",
)
_YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


@click.group(
    "plan",
    cls=LazyGroup,
    lazy={
        "correct": (
            "cleveragents.cli.commands.correct:correct",
            "Take one decision back with all that stands on it, and do it again with advice",
        ),
        "prompt": (
            "cleveragents.cli.commands.correct:prompt",
            "Tell a plan that has failed or waits what it needs to know, and go on",
        ),
        "checkpoint": (
            "cleveragents.cli.commands.checkpoint:checkpoint",
            "List, show, create, prune, delete, verify and compare checkpoints",
        ),
        "resume": (
            "cleveragents.cli.commands.resume:resume",
            "Go on with a plan from its last finished step",
        ),
        "rollback": (
            "cleveragents.cli.commands.rollback:rollback",
            "Take a plan and all its sandboxes back to a checkpoint",
        ),
    },
    first=(
        *("use", "execute", "status", "diff", "apply", "rollback", "resume", "correct", "prompt"),
        *("checkpoint", "list", "tree", "explain", "artifacts", "errors", "effects"),
    ),
    epilog=examples("agents plan use add-login.yaml", "agents plan execute latest"),
)
def plan() -> None:
    """Make, run, roll back and apply plans."""


@plan.command(
    epilog=examples(
        "agents plan use add-login.yaml",
        "agents plan use add-login.yaml --resource code=../shop --include-uncommitted",
    )
)
@arguments.action_file("action")
@click.option(
    "--resource",
    "resources",
    metavar="NAME=PATH",
    type=arguments.AS_IT_IS,
    multiple=True,
    help="Work on PATH instead of what the action says. May be repeated.",
)
@click.option("--include-uncommitted", is_flag=True, help="Take uncommitted work along.")
@click.pass_obj
def use(app: App, action: str, resources: tuple[str, ...], *, include_uncommitted: bool) -> None:
    """Make a plan from an action file. Nothing of the project is changed."""
    overrides = dict(_override(text) for text in resources)
    result = app.container.plan_service.use(
        action, overrides, include_uncommitted=include_uncommitted
    )
    app.report(plan_views.used(result))


@plan.command("list", epilog=examples("agents plan list", "agents plan list --all --format json"))
@click.option("--all", "children", is_flag=True, help="Also child plans, below their parents.")
@click.option("--here", is_flag=True, help="Only those of the place you are in.")
@click.pass_obj
def list_plans(app: App, *, children: bool, here: bool) -> None:
    """List all plans, the newest first, and say where each belongs."""
    found = app.container.plan_queries.list(children=children)
    app.show(list_views.listed(found.here if here else found))


@plan.command(epilog=examples("agents plan execute latest", "agents -v plan execute <PLAN_ID>"))
@arguments.PLAN
@EFFECTS
@click.pass_obj
def execute(app: App, plan_id: str, effects: str | None) -> None:
    """Start a plan, or go on with one that was interrupted or has failed."""
    run(app, app.plan(plan_id), chosen(effects))


@plan.command(
    epilog=examples("agents plan status latest", "agents plan status <PLAN_ID> --format json")
)
@arguments.PLAN
@click.pass_obj
def status(app: App, plan_id: str) -> None:
    """Show where a plan stands."""
    found = app.container.plan_queries.status(app.plan(plan_id))
    app.show(plan_views.status(found, _holds(app, found)))


@plan.command(epilog=examples("agents plan cancel <PLAN_ID>"))
@arguments.PLAN
@click.pass_obj
def cancel(app: App, plan_id: str) -> None:
    """End a plan for good. Work in its sandboxes stays where it is."""
    result = app.container.plan_service.cancel(app.plan(plan_id))
    app.report(plan_views.cancelled(result, app.project(result.plan.plan_id)))


@plan.command(epilog=examples("agents plan discard <PLAN_ID>"))
@arguments.PLAN
@_YES
@click.pass_obj
def discard(app: App, plan_id: str, *, yes: bool) -> None:
    """Remove what a plan that is over still has in its sandboxes, applied or not."""
    wanted = app.plan(plan_id)
    project = app.project(wanted)
    result = app.container.sandbox_cleanup.discard(
        wanted,
        lambda kept: app.confirm(f"Discard the sandboxes of {project}: {', '.join(kept)}", yes=yes),
    )
    app.report(plan_views.discarded(result, project))


@plan.command(
    epilog=examples(
        "agents plan diff <PLAN_ID>", "agents plan diff --correction <CORRECTION_ID> <PLAN_ID>"
    )
)
@arguments.PLAN
@click.option(
    "--correction", metavar="CORRECTION_ID", help="Compare with the state before a correction."
)
@click.pass_obj
def diff(app: App, plan_id: str, correction: str | None) -> None:
    """Show what applying the plan would change in the project."""
    service, wanted = app.container.plan_diff_service, app.plan(plan_id)
    if correction is None:
        found = service.diff(wanted)
    else:
        found = service.diff_of_correction(wanted, CorrectionId(correction))
    app.show(plan_views.diff(wanted, found))


@plan.command(
    epilog=examples(
        "agents plan diff latest && agents plan apply latest",
        "agents plan apply --no-commit --yes <PLAN_ID>",
        "agents plan apply --yes --branch agents/login <PLAN_ID>",
    )
)
@arguments.PLAN
@_YES
@click.option("--no-commit", is_flag=True, help="Leave the changes in the working tree.")
@click.option(
    "--branch",
    metavar="NAME",
    type=arguments.AS_IT_IS,
    help="Commit on a new branch; touch nothing else.",
)
@click.option("--message", "-m", metavar="TEXT", help="The commit message.")
@click.pass_obj
def apply(
    app: App,
    plan_id: str,
    branch: str | None,
    message: str | None,
    *,
    yes: bool,
    no_commit: bool,
) -> None:
    """Bring the plan's result into the project: all of it, or nothing."""
    if no_commit and branch:
        raise click.UsageError("--no-commit and --branch exclude each other")
    wanted = app.container.plan_queries.get(app.plan(plan_id))
    options = ApplyOptions(message=message or _message(wanted), branch=branch, commit=not no_commit)
    project = app.project(wanted.plan_id)

    def confirm(question: "ApplyQuestion") -> bool:
        return app.confirm(plan_views.apply_question(question, project), yes=yes)

    with app.working() as container:
        result = container.apply_service.apply(wanted.plan_id, options, confirm)
    app.report(plan_views.applied(result, project))


@plan.command(
    epilog=examples("agents plan tree latest", "agents plan tree --show-superseded <PLAN_ID>")
)
@arguments.PLAN
@click.option("--show-superseded", is_flag=True, help="Also what no longer counts.")
@click.pass_obj
def tree(app: App, plan_id: str, *, show_superseded: bool) -> None:
    """Show the plan's decisions and the checkpoint of each."""
    history = app.container.plan_queries.history(app.plan(plan_id))
    app.show(decision_tree.tree(history, show_superseded=show_superseded))


@plan.command(epilog=examples("agents plan explain <DECISION_ID>"))
@arguments.DECISION
@click.pass_obj
def explain(app: App, decision_id: str) -> None:
    """Show why a decision was made and what came of it."""
    found = app.container.plan_queries.explain(decision_id)
    app.show(decision_views.explained(found))


@plan.command(epilog=examples("agents plan artifacts <PLAN_ID>"))
@arguments.PLAN
@click.pass_obj
def artifacts(app: App, plan_id: str) -> None:
    """Show what each step wrote and said."""
    app.show(decision_views.artifacts(app.container.plan_queries.record(app.plan(plan_id))))


@plan.command(epilog=examples("agents plan errors <PLAN_ID>"))
@arguments.PLAN
@click.pass_obj
def errors(app: App, plan_id: str) -> None:
    """Show what failed, and what to do about it."""
    app.show(decision_views.errors(app.container.plan_queries.failures(app.plan(plan_id))))


@plan.command(epilog=examples("agents plan effects <PLAN_ID>"))
@arguments.PLAN
@click.pass_obj
def effects(app: App, plan_id: str) -> None:
    """Show what the steps have done outside their sandboxes, and what is known of it."""
    app.show(effect_views.ledger(app.container.plan_queries.effects(app.plan(plan_id))))


def chosen(effects: str | None) -> EffectChoice:
    return EffectChoice(effects) if effects else EffectChoice.STOP


def run(
    app: App,
    plan_id: PlanId,
    choice: EffectChoice,
    resolution: Resolution = UNDECIDED,
    *,
    rebuild: bool = False,
) -> None:
    with app.working() as container:
        container.store_service.sweep()  # what a crash has left behind
        service = container.plan_resume_service
        finished(service.run(plan_id, choice, resolution, rebuild=rebuild))
    found = app.container.plan_queries.status(plan_id)
    app.report(plan_views.executed(found, _holds(app, found)))


def _holds(app: App, found: "PlanStatus") -> Enforcement:
    return app.container.confinements.enforcement(found.plan.action.confinement)


def finished(plan: Plan) -> Plan:
    """The plan as it came back; raises StepFailedError if that was because a step failed."""
    if plan.state is State.ERRORED and plan.error is not None:
        step = f"{plan.error.step} ({plan.error.tool})"
        hint = plan.error.hint if plan.error.code == SubplansFailedError.code else None
        raise StepFailedError(plan.plan_id, step, plan.error.message, hint)
    return plan


def _override(text: str) -> tuple[str, str]:
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise click.UsageError(f"--resource {text!r} is not NAME=PATH")
    return name, path


def _message(wanted: Plan) -> str:
    """One line for the log, then the plan's own words."""
    title = f"{wanted.action.name}: apply plan {wanted.plan_id}"
    return f"{title}\n\n{wanted.action.description}"
