"""One run from its start to its end: make the plan, execute it, and see what is to become of it."""

import sys

from cleveragents.cli.app import App
from cleveragents.cli.commands.run.ending import Ended, EndWish, settle, settle_in_place
from cleveragents.cli.views import runs as views
from cleveragents.domain.errors import ActorError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.run_request import RunRequest


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
