"""`agents plan correct` and `agents plan prompt`: text in, one service call, a view out."""

from collections.abc import Mapping

import click

from cleveragents.application.services.corrections.correction_service import (
    Advice,
    CorrectionQuestion,
)
from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.commands.plan.execute import finished
from cleveragents.cli.framework import command
from cleveragents.cli.views import corrections as views
from cleveragents.cli.views.words import count
from cleveragents.cli.words_given import decision, names_a_plan
from cleveragents.domain.correction import CorrectionMode
from cleveragents.domain.errors import UsageError

_NO_EXECUTE = click.option("--no-execute", is_flag=True, help="Do not go on; leave it queued.")


@command(
    "agents plan correct 2 -g 'use the new API'",
    "agents plan correct 2 --plan hello-3 -g 'see file' --step-file s.yaml",
    "agents plan correct 'write the page' -g 'what if' --dry-run",
    "agents plan correct 2 -g 'faster' --keep 4 --keep 'build'",
    "agents plan correct --mode append -g 'and a licence' <DECISION_ID>",
)
@arguments.DECISION
@arguments.OF_PLAN
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in CorrectionMode]),
    default=CorrectionMode.REVERT.value,
    show_default=True,
    help="revert: take it back and do it again. append: keep it, and add a child plan.",
)
@click.option("--guidance", "-g", metavar="TEXT", required=True, help="What to do differently.")
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
@arguments.YES
@click.pass_obj
def correct(
    app: App,
    decision_id: str,
    plan_id: str | None,
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
    wanted = decision(app, decision_id, plan_id)
    if mode == CorrectionMode.APPEND:
        _append(app, wanted, advice, flags)
        return
    if flags["dry_run"]:
        with app.working() as container:
            preview = container.correction_service.preview(wanted, advice)
        app.show(views.previewed(preview))
        return
    with app.working() as container:
        result = container.correction_service.revert(
            wanted, advice, lambda question: _asked(app, question, yes=flags["yes"])
        )
        plan = result.done.plan
        if not flags["no_execute"]:
            plan = finished(container.correction_service.go_on(plan.plan_id))
    status = app.container.plan_queries.status(plan.plan_id)
    app.report(views.corrected(result, status))


@command("agents plan prompt 'the port is 8080, not 80'", "agents plan prompt hello-3 'go on'")
@arguments.PLAN
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--guidance", "-g", metavar="TEXT", help="The same as TEXT.")
@_NO_EXECUTE
@click.pass_obj
def prompt(
    app: App, plan_id: str | None, text: str | None, guidance: str | None, *, no_execute: bool
) -> None:
    """Tell a plan that has failed or waits what it needs to know, and go on."""
    if text is None and guidance is None and not (plan_id and names_a_plan(app, plan_id)):
        plan_id, text = None, plan_id  # one word alone is what to tell it
    if (text is None) == (guidance is None):
        raise UsageError("say once what the plan shall know", "agents plan prompt 'what to do'")
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
    decision, again = question.impact.decision, count(len(question.impact.steps), "step")
    step = decision.step_index
    called = decision.decision_id if step is None else f"step {step + 1}"
    what = f"Take {called} back and do {again} again"
    return app.confirm(what, yes=yes, show=lambda: views.previewed(question.preview))


def _text(given: str) -> str:
    if not given.strip() or "\0" in given:
        raise UsageError("the guidance is empty", "say with --guidance what to do differently")
    return given.strip()
