"""A run from start to end: its plan is made and executed, and its result applied, kept or gone."""

import sys

import click
from msgspec import Struct
from msgspec.structs import replace

from cleveragents.cli.app import App
from cleveragents.cli.commands.plan.changes import commit_message
from cleveragents.cli.views import clean_up
from cleveragents.cli.views import plans as plan_views
from cleveragents.cli.views import rollbacks as rollback_views
from cleveragents.cli.views import runs as views
from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.checkpoint_lookup import told_apart
from cleveragents.domain.errors import (
    ActorError,
    ApplyCheckFailedError,
    PlanError,
    ProgramFailedError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.run_request import RunRequest

_CHOICES = (
    "apply it (a), keep it in the sandbox (k), see the patch (p), go back (g), discard it (d)"
)


class EndWish(Struct, frozen=True, kw_only=True):
    """What was said beforehand about the end; at most one of them."""

    apply: bool = False
    check: str | None = None
    keep: bool = False


class Ended(Struct, frozen=True, kw_only=True):
    """A program that has ended; `failure` if it did not end well."""

    plan_id: PlanId
    failure: ActorError | None = None


def run_program(app: App, request: RunRequest, ending: EndWish) -> None:
    app.hush()
    console = app.container.show_programs(aside=not app.is_for_people)
    made = app.container.run_service.make(request)
    plan_id = made.used.plan.plan_id
    for line in views.beginning(made, app.project(plan_id)):
        sys.stderr.write(f"{line}\n")
    app.at_the_latest(console.take_back)
    ended = _executed(app, plan_id)
    if request.in_place:
        settle_in_place(app, ended)
    else:
        settle(app, ended, ending)


def _executed(app: App, plan_id: PlanId) -> Ended:
    """What the program did is on record, however it ended."""
    failure: ActorError | None = None
    with app.working() as container:
        container.store_service.sweep()  # what a crash has left behind
        try:
            container.plan_resume_service.run(plan_id)
        except ActorError as error:
            failure = error
    return Ended(plan_id=plan_id, failure=failure)


def settle(app: App, ended: Ended, ending: EndWish) -> None:
    outcome = _outcome(app, ended)
    if ended.failure is not None and not _asks(app, ending):
        app.report(views.failed(outcome, ended.failure))
    elif ending.check is not None and ended.failure is None:
        _apply_if_checked(app, outcome, ending.check)
    elif ending.apply and ended.failure is None:
        _apply(app, outcome)
    elif _asks(app, ending) and (outcome.files or ended.failure):
        _ask(app, outcome, ended.failure)
    else:
        app.report(views.kept(outcome))


def settle_in_place(app: App, ended: Ended) -> None:
    """What was done is where it belongs; all there is to say is how it is taken back."""
    app.report(views.ended_in_place(_outcome(app, ended), ended.failure))


def _outcome(app: App, ended: Ended) -> views.RunOutcome:
    plan = app.container.plan_finder.get(ended.plan_id)
    return views.RunOutcome(
        plan=plan,
        project=app.project(plan.plan_id),
        diffs=app.container.plan_diff_service.diff(plan.plan_id),
        ended_with=_ended_with(ended.failure),
        notes=app.container.checkpoint_service.notes_at(plan),
    )


def _ended_with(failure: ActorError | None) -> int | None:
    if failure is None:
        return 0
    return failure.ended_with if isinstance(failure, ProgramFailedError) else None


def _asks(app: App, ending: EndWish) -> bool:
    said = ending.apply or ending.keep or ending.check is not None
    return not said and app.is_for_people and sys.stdin.isatty() and sys.stderr.isatty()


def _apply_if_checked(app: App, outcome: views.RunOutcome, check: str) -> None:
    if app.container.run_service.is_checked(outcome.plan.plan_id):
        _apply(app, outcome)
        return
    error = ApplyCheckFailedError(outcome.plan.plan_id, check)
    app.report(views.failed(outcome, error))


def _apply(app: App, outcome: views.RunOutcome) -> None:
    plan = outcome.plan
    options = ApplyOptions(message=commit_message(plan), branch=None, commit=True)
    with app.working() as container:
        if not plan.executed:
            container.plan_resume_service.accept(plan.plan_id)
        result = container.apply_service.apply(plan.plan_id, options, lambda _: True)
    app.report(views.applied(replace(outcome, plan=result.plan), result))


# --- with somebody who can answer -----------------------------------------------------------------


def _ask(app: App, outcome: views.RunOutcome, failure: ActorError | None) -> None:
    """Until there is an answer that ends it; none at all keeps what is there."""
    app.preview(views.question(outcome, failure))
    while True:
        said = _asked(_CHOICES, default="k", show_default=True)
        match said.lower()[:1]:
            case "a":
                return _apply(app, outcome)
            case "d":
                return _discard(app, outcome.plan)
            case "p":
                app.preview(plan_views.diff(outcome.plan.plan_id, outcome.diffs))
            case "g":
                outcome = _go_back(app, outcome)
            case "k":
                return app.report(views.kept(outcome))
            case _:
                click.echo("one of a, k, p, g, d", err=True)


def _discard(app: App, plan: Plan) -> None:
    with app.working() as container:
        result = container.discarding.discard(plan.plan_id, lambda _: True)
    app.report(clean_up.discarded(result))


def _go_back(app: App, outcome: views.RunOutcome) -> views.RunOutcome:
    plan_id = outcome.plan.plan_id
    lines = told_apart(app.container.checkpoint_service.timeline(plan_id))
    click.echo("\n".join(f"  {line}" for line in lines), err=True)
    wanted = _asked("go back to which (its number)", default="")
    if not wanted:
        return outcome
    try:
        with app.working() as container:
            result = container.rollback_service.rollback(plan_id, wanted, lambda _: True)
    except PlanError as error:  # a name that there is not: nothing has happened
        click.echo(f"{error.message}\n{error.hint}", err=True)
        return outcome
    app.preview(rollback_views.rolled_back(result, outcome.project))
    return _outcome(app, Ended(plan_id=plan_id))


def _asked(question: str, *, default: str, show_default: bool = False) -> str:
    """The end of what can be typed is no answer, which is the default; Ctrl-C is none at all."""
    try:
        return click.prompt(question, default=default, show_default=show_default, err=True).strip()
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise
        return default
