"""What can go wrong with whoever decides the steps of a plan: an actor, or a program."""

from collections.abc import Sequence

from cleveragents.domain.errors.base import PlanError, UsageError

_MOST_NAMED = 5


def listed(names: Sequence[str], most: int = _MOST_NAMED) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class ActorError(PlanError, code="actor-failed"):
    """The actor could not say what comes next; the plan can be resumed."""


class ActorUnavailableError(ActorError, code="actor-unavailable"):
    """This actor cannot be asked here."""


class ProgramFailedError(ActorError, code="program-failed"):
    """The program that a person ran has ended, and not well; what it did is kept. `ended_with` is
    its exit code; None if a signal ended it."""

    ended_with: int | None = None

    def __init__(self, plan_id: str, message: str, remedy: str = "") -> None:
        usual = self.usual(plan_id)
        super().__init__(message, f"{remedy}; or {usual}" if remedy else usual)

    @staticmethod
    def usual(plan_id: str) -> str:
        """What can be typed whatever the cause was."""
        return (
            f"start it again: agents plan resume {plan_id}; or take what is there:"
            f" agents apply --as-it-is {plan_id}"
        )


class BudgetExhaustedError(ActorError, code="budget-exhausted"):
    def __init__(self, plan_id: str, what: str, used: str, limit: str, key: str) -> None:
        super().__init__(
            f"plan {plan_id} has used {used} of {limit} {what}",
            f"allow more and go on: agents config set {key} NUMBER, then"
            f" agents plan resume {plan_id}",
        )


class ModelKeyMissingError(ActorError, code="model-key-missing"):
    def __init__(self, provider: str, variable: str) -> None:
        super().__init__(
            f"there is no key for the models of {provider}",
            f"set the variable {variable}, or say it once: agents config set actor.llm.api-key KEY",
        )


class ModelUnreachableError(ActorError, code="model-unreachable"):
    """Nobody answered, or only with excuses, as often as it was tried."""


class ModelRefusedError(ActorError, code="model-refused"):
    """The provider will not answer this, however often it is asked."""


class ContextOverflowError(ActorError, code="context-overflow"):
    def __init__(self, plan_id: str, detail: str) -> None:
        super().__init__(
            f"the conversation is too long for the model: {detail}",
            f"go back to before its longest part (agents plan tree {plan_id}, then agents plan"
            " correct --mode revert --guidance TEXT DECISION), or let a child plan with an empty"
            " memory go on: agents plan correct --mode append --guidance TEXT DECISION",
        )


class ModelAnswerError(ActorError, code="model-answer"):
    """The model answered, but nothing that can be carried out."""

    def __init__(self, plan_id: str, problem: str) -> None:
        super().__init__(
            f"the model's answers cannot be used: {problem}",
            f"ask it again: agents plan resume {plan_id}; or help it: agents plan prompt"
            f" {plan_id} TEXT",
        )


class ModelDeclinedError(ActorError, code="model-declined"):
    """The model says that it will not do it."""

    def __init__(self, plan_id: str, said: str) -> None:
        super().__init__(
            f"the model declines: {said}",
            f"say it differently: agents plan prompt {plan_id} TEXT; or ask it again: agents plan"
            f" resume {plan_id}",
        )


class NothingToRunError(UsageError, code="nothing-to-run"):
    """No command, or a task and nobody to do it."""


class PlaceRefusedError(PlanError, code="place-refused"):
    """Where one stands is no project."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(
            f"{place} is {what}, and not a project: to work on it would be to work on everything",
            "go to the folder of the project first (cd); in a sandbox, it can be named as well:"
            " --resource code=PATH",
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
            f" agents apply {plan_id}",
        )


# --- in the user's own tree -----------------------------------------------------------------------


class RepositoryBusyError(PlanError, code="repository-busy"):
    """Somebody's git has the index; nothing was changed."""

    def __init__(self, place: str, lock: str) -> None:
        from shlex import quote  # noqa: PLC0415 - only this mistake needs it

        super().__init__(
            f"a git command works in {place}, or one that was killed has left {lock}",
            "wait for it and repeat the command; if no git runs there, remove the lock:"
            f" rm {quote(lock)}",
        )


class InPlaceRefusedError(PlanError, code="in-place-refused"):
    """A tree that is not worked on where it is; nothing was changed."""


class PlaceTakenError(PlanError, code="place-taken"):
    """Another installation has a timeline of this tree."""

    def __init__(self, place: str, data_dir: str, plan_id: str, note: str) -> None:
        from shlex import quote  # noqa: PLC0415 - only this mistake needs it

        super().__init__(
            f"{place} is worked on in place by another installation, whose data is in {data_dir}"
            f" (plan {plan_id}): two timelines of one tree would undo each other",
            f"go on there, or close it there with `agents apply`; if that installation is gone:"
            f" rm {quote(note)}",
        )


class TimelineTermsError(PlanError, code="timeline-terms"):
    """What is asked for is not what the timeline of this place is of; nothing was changed."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"{name} is open at this place, and stays as it began: {what}",
            "close it first with `agents apply` (all files stay as they are), then begin anew",
        )


class ChangedByOthersError(PlanError, code="changed-by-others"):
    """Nobody was there to ask; nothing was changed."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"changed by others since the last checkpoint: {listed(names)}",
            "leave that as it is with --keep, or take it back too with --yes (a checkpoint keeps it"
            " either way)",
        )


class StillRunningError(PlanError, code="still-running"):
    """A restore under a writer would be torn; nothing was changed."""

    def __init__(self, place: str, processes: Sequence[str]) -> None:
        super().__init__(
            f"what a run has started in {place} still runs: {listed(processes)}",
            "end it, or have it ended first with --now",
        )


class DatabaseInUseError(PlanError, code="database-in-use"):
    """Pages under a connection would be others than it remembers; nothing was changed."""

    def __init__(self, path: str, processes: Sequence[str]) -> None:
        by = (
            f"in {listed(processes)}" if processes else "in a process that cannot be seen from here"
        )
        super().__init__(
            f"{path} is in use {by}, and is not taken back under it; nothing was changed",
            "end that program, or let it close the database, then say it again",
        )
