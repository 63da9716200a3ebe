"""Which word is which, where the plan may be left out: `rollback 1`, `checkpoint diff 0 2`."""

from cleveragents.cli.app import App
from cleveragents.domain.checkpoint_lookup import told_apart
from cleveragents.domain.errors import (
    CheckpointAmbiguousError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    CheckpointRequiredError,
    NoPlanHereError,
    PlanError,
    PlanNotFoundError,
)
from cleveragents.domain.ids import DecisionId, PlanId


def plan_and_checkpoint(
    app: App, first: str | None, second: str | None
) -> tuple[PlanId, str | None]:
    """One word alone is a checkpoint of the latest plan of here; where it does not name exactly
    one, it may be a plan that was named without a checkpoint."""
    if first is None or second is not None:
        return app.plan(first), second
    try:
        latest = app.plan(None)
    except (NoPlanHereError, PlanNotFoundError):
        return app.plan(first), None
    if _is_checkpoint(app, latest, first):
        return latest, first
    # Whoever looks for what is neither says what there is.
    return (app.plan(first), None) if names_a_plan(app, first) else (latest, first)


def sure_checkpoint(app: App, first: str | None, second: str | None) -> tuple[PlanId, str]:
    """The same for a command that is about one. Raises CheckpointRequiredError."""
    plan_id, wanted = plan_and_checkpoint(app, first, second)
    if wanted is None:
        line = app.container.checkpoint_service.timeline(plan_id)
        raise CheckpointRequiredError(plan_id, told_apart(line))
    return plan_id, wanted


def decision(app: App, wanted: str, plan: str | None) -> DecisionId:
    """Of the plan that was named, or of the latest of here, if there is one; ids are of any."""
    try:
        of = app.plan(plan)
    except (NoPlanHereError, PlanNotFoundError):
        if plan is not None:
            raise
        of = None
    return app.container.plan_queries.find_decision(wanted, of)


def names_a_plan(app: App, word: str) -> bool:
    try:
        app.plan(word)
    except PlanError:
        return False
    return True


def _is_checkpoint(app: App, plan_id: PlanId, word: str) -> bool:
    try:
        app.container.checkpoint_service.get_checkpoint(plan_id, word)
    except (CheckpointNotFoundError, CheckpointMismatchError, CheckpointAmbiguousError):
        return False
    return True
