"""What can go wrong with whoever decides the steps of a plan."""

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


class ModelKeyMissingError(ActorError):
    code = "model-key-missing"

    def __init__(self, provider: str, variable: str) -> None:
        super().__init__(
            f"there is no key for the models of {provider}",
            f"set the variable {variable}, or say it once: agents config set actor.llm.api-key KEY",
        )


class ModelUnreachableError(ActorError):
    """Nobody answered, or only with excuses, as often as it was tried."""

    code = "model-unreachable"


class ModelRefusedError(ActorError):
    """The provider will not answer this, however often it is asked."""

    code = "model-refused"


class ContextOverflowError(ActorError):
    code = "context-overflow"

    def __init__(self, plan_id: str, detail: str) -> None:
        super().__init__(
            f"the conversation is too long for the model: {detail}",
            f"go back to before its longest part (agents plan tree {plan_id}, then agents plan"
            " correct --mode revert --guidance TEXT DECISION), or let a child plan with an empty"
            " memory go on: agents plan correct --mode append --guidance TEXT DECISION",
        )


class ModelAnswerError(ActorError):
    """The model answered, but nothing that can be carried out."""

    code = "model-answer"

    def __init__(self, plan_id: str, problem: str) -> None:
        super().__init__(
            f"the model's answers cannot be used: {problem}",
            f"ask it again: agents plan resume {plan_id}; or help it: agents plan prompt"
            f" {plan_id} TEXT",
        )


class ModelDeclinedError(ActorError):
    """The model says that it will not do it."""

    code = "model-declined"

    def __init__(self, plan_id: str, said: str) -> None:
        super().__init__(
            f"the model declines: {said}",
            f"say it differently: agents plan prompt {plan_id} TEXT; or ask it again: agents plan"
            f" resume {plan_id}",
        )
