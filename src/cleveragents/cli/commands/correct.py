"""`agents plan correct` and `agents plan prompt`: text in, one service call, a view out."""

from collections.abc import Mapping

import click

from cleveragents.application.services.corrections.correction_service import (
    Advice,
    CorrectionQuestion,
)
from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.commands.plan import finished
from cleveragents.cli.framework import AgentsCommand, examples
from cleveragents.cli.views import corrections as views
from cleveragents.cli.views.words import count
from cleveragents.domain.correction import CorrectionMode
from cleveragents.domain.errors import UsageError

_NO_EXECUTE = click.option("--no-execute", is_flag=True, help="Do not go on; leave it queued.")


@click.command(
    cls=AgentsCommand,
    epilog=examples(
        "agents plan correct --mode revert --guidance 'use the new API' <DECISION_ID>",
        "agents plan correct --mode revert --guidance 'see file' --step-file s.yaml <ID>",
        "agents plan correct --mode revert --guidance 'what if' --dry-run <DECISION_ID>",
        "agents plan correct --mode revert --guidance 'faster' --keep 4 --keep 'build' <ID>",
        "agents plan correct --mode append --guidance 'and a licence' <DECISION_ID>",
    ),
)
@arguments.DECISION
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in CorrectionMode]),
    required=True,
    help="revert: take it back and do it again. append: keep it, and add a child plan.",
)
@click.option("--guidance", metavar="TEXT", required=True, help="What to do differently.")
@click.option(
    "--step-file",
    metavar="FILE",
    type=arguments.AS_IT_IS,
    help="YAML of the step that takes its place; for append, of the steps to add.",
)
@click.option(
    "--keep",
    metavar="STEP",
    multiple=True,
    help="A later step, by number or name, that stays although nothing proves that it still holds;"
    " it is unchecked then. `all`: every such step. May be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Only show what it would do, and why.")
@_NO_EXECUTE
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def correct(
    app: App,
    decision_id: str,
    mode: str,
    guidance: str,
    step_file: str | None,
    keep: tuple[str, ...],
    **flags: bool,
) -> None:
    """Take one decision back with all that stands on it, and do it again with advice.

    Steps that are proven not to depend on it stay as they are.
    """
    advice = Advice(guidance=_text(guidance), step_file=step_file, keep=keep)
    if mode == CorrectionMode.APPEND:
        _append(app, decision_id, advice, flags)
        return
    if flags["dry_run"]:
        with app.working() as container:
            preview = container.correction_service.preview(decision_id, advice)
        app.show(views.previewed(preview))
        return
    with app.working() as container:
        result = container.correction_service.revert(
            decision_id, advice, lambda question: _asked(app, question, yes=flags["yes"])
        )
        plan = result.done.plan
        if not flags["no_execute"]:
            plan = finished(container.correction_service.go_on(plan.plan_id))
    status = app.container.plan_queries.status(plan.plan_id)
    app.report(views.corrected(result, status))


@click.command(
    cls=AgentsCommand,
    epilog=examples("agents plan prompt <PLAN_ID> 'the port is 8080, not 80'"),
)
@arguments.PLAN
@click.argument("text", metavar="TEXT", required=False)
@click.option("--guidance", metavar="TEXT", help="The same as TEXT.")
@_NO_EXECUTE
@click.pass_obj
def prompt(
    app: App, plan_id: str, text: str | None, guidance: str | None, *, no_execute: bool
) -> None:
    """Tell a plan that has failed or waits what it needs to know, and go on."""
    if (text is None) == (guidance is None):
        raise UsageError(
            "say once what the plan shall know", f"agents plan prompt {plan_id} 'what to do'"
        )
    with app.working() as container:
        told = container.prompt_service.prompt(app.plan(plan_id), _text(text or guidance or ""))
        if not no_execute:
            finished(container.correction_service.go_on(told.plan.plan_id))
    app.report(views.prompted(told, app.container.plan_queries.status(told.plan.plan_id)))


def _append(app: App, decision_id: str, advice: Advice, flags: Mapping[str, bool]) -> None:
    if advice.keep:
        raise UsageError(
            "--mode append takes nothing back, so that everything is kept", "leave --keep out"
        )
    if flags["dry_run"]:
        raise UsageError(
            "--mode append takes nothing back, so that there is no impact to show",
            "leave --dry-run out; look at the result before you apply it",
        )
    with app.working() as container:
        done = container.append_service.append(decision_id, advice.guidance, advice.step_file)
        if not flags["no_execute"]:
            finished(container.correction_service.go_on(done.plan.plan_id))
    app.report(views.appended(done, app.container.plan_queries.status(done.plan.plan_id)))


def _asked(app: App, question: CorrectionQuestion, *, yes: bool) -> bool:
    impact = question.impact
    what = (
        f"Take {impact.decision.decision_id} back and do {count(len(impact.steps), 'step')} again"
    )
    return app.confirm(what, yes=yes)


def _text(given: str) -> str:
    if not given.strip() or "\0" in given:
        raise UsageError("the guidance is empty", "say with --guidance what to do differently")
    return given.strip()
