"""Owns what can go wrong with whoever decides the steps of a plan."""

from cleveragents.domain.errors.base import PlanError


class ActorError(PlanError):
    """The actor could not say what comes next; the plan can be resumed."""

    code = "actor-failed"


class ActorUnavailableError(ActorError):
    """This actor cannot be asked here."""

    code = "actor-unavailable"


class BudgetExhaustedError(ActorError):
    code = "budget-exhausted"

    def __init__(self, plan_id: str, what: str, used: str, limit: str, key: str) -> None:
        super().__init__(
            f"plan {plan_id} has used {used} of {limit} {what}",
            f"allow more and go on: agents config set {key} NUMBER, then"
            f" agents plan resume {plan_id}",
        )
