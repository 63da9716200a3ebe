"""What can be wrong with a program that `agents run` is to start, or with the place for it."""

from cleveragents.domain.errors.base import PlanError, UsageError


class NothingToRunError(UsageError, code="nothing-to-run"):
    """No command, or a task and nobody to do it."""


class PlaceRefusedError(PlanError, code="place-refused"):
    """Where one stands is no project."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(
            f"{place} is {what}, and not a project: a sandbox of it would be one of everything",
            "go to the folder of the project first (cd), or name it: --resource code=PATH",
        )


class ProgramNotFoundError(PlanError, code="program-not-found"):
    def __init__(self, program: str, suggestion: str | None) -> None:
        meant = f"; did you mean `{suggestion}`?" if suggestion else ""
        super().__init__(
            f"there is no program `{program}` on this machine{meant}",
            "install it, or say where it is: agents run -- /path/to/it",
        )


class ApplyCheckFailedError(PlanError, code="apply-check-failed"):
    """What `--apply-if` runs did not pass; nothing of the project was touched."""

    def __init__(self, plan_id: str, check: str) -> None:
        super().__init__(
            f"not applied: `{check}` has failed in the sandbox",
            f"what it said: agents plan errors {plan_id}; apply the result all the same:"
            f" agents plan apply {plan_id}",
        )
