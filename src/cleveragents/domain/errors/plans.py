"""What can go wrong with an action or a plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cleveragents.domain.errors.base import PlanError


class CorrectionNotFoundError(PlanError, code="correction-not-found"):
    def __init__(self, correction_id: str) -> None:
        super().__init__(
            f"there is no correction {correction_id}",
            "see the corrections of a decision with `agents plan explain <DECISION_ID>`",
        )


class CorrectionRefusedError(PlanError, code="correction-refused"):
    """A decision that cannot be corrected, with the reason; nothing was changed."""


class ActionFileError(PlanError, code="action-invalid"):
    """An action file that cannot be used; nothing was created from it."""

    def __init__(self, path: str, problems: Sequence[str]) -> None:
        from shlex import quote  # noqa: PLC0415 - only this mistake needs it

        super().__init__(
            f"{path} is not a usable action file:\n{_listing(problems)}",
            f"correct it until `agents action check {quote(path)}` is content; nothing was created",
        )
        self.problems = tuple(problems)


class StepFileError(PlanError, code="step-file-invalid"):
    """A file whose step cannot take the place of another; nothing was changed."""

    def __init__(self, path: str, problems: Sequence[str]) -> None:
        super().__init__(
            f"{path} does not hold one usable step:\n{_listing(problems)}",
            "correct it and repeat the command; nothing was changed",
        )


class ActionNotFoundError(PlanError, code="action-not-found"):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"cannot read the action file {path}: {reason}",
            "give the path of a YAML file that is there; `ls *.yaml` shows those of this folder",
        )


class PlanNotFoundError(PlanError, code="plan-not-found"):
    """None of this id; without one, there is no plan at all."""

    def __init__(self, plan_id: str | None = None) -> None:
        if plan_id is None:
            super().__init__(
                "there is no plan yet",
                "make one with `agents run -- COMMAND`, or with `agents plan use ACTION.yaml`",
            )
        else:
            hint = "list the plans with `agents plan list`"
            super().__init__(f"there is no plan {plan_id}", hint)


class NoPlanHereError(PlanError, code="no-plan-here"):
    """`latest` was said where nothing was planned; a plan of elsewhere must never be guessed."""

    def __init__(self, folder: str, elsewhere: Sequence[str], more: int) -> None:
        rest = f"\n  and {more} more: `agents plan list`" if more else ""
        super().__init__(
            f"no plan was made of {folder}, or of the repository or folder that it is in. The last"
            f" plans of other places:\n{_listing(elsewhere)}{rest}",
            "make one here with `agents run -- COMMAND` or `agents plan use ACTION.yaml`, or say"
            " `--any` with a plan's name, or alone for the last one made anywhere",
        )


class PlanElsewhereError(PlanError):
    """A name of a plan of another place; that it was meant must be said."""

    code = "plan-elsewhere"

    def __init__(self, wanted: str, name: str, place: str | None) -> None:
        super().__init__(
            f"no plan of the place you are in is called {wanted}; plan {name} belongs to"
            f" {place or 'no place on this machine'}",
            f"go there, or say that you mean it: --any {name}",
        )


class PlanAmbiguousError(PlanError, code="plan-ambiguous"):
    def __init__(self, prefix: str, matches: Sequence[str]) -> None:
        super().__init__(
            f"several plans begin or end with {prefix}:\n{_listing(matches)}",
            "type the letters before the one you mean, or its name",
        )


class PlanStateError(PlanError, code="plan-state"):
    """The plan is in a state in which this cannot be done."""


class PlanAppliedError(PlanError, code="plan-applied"):
    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} is applied, and so it is over",
            f"as long as what it replaced is kept, `agents undo --plan {plan_id}` takes its changes"
            " back out of the project; start again with `agents plan use`",
        )


class PlanCancelledError(PlanError, code="plan-cancelled"):
    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} is cancelled",
            "start again with `agents run`, or with `agents plan use`",
        )


class PlanLockedError(PlanError, code="plan-locked"):
    def __init__(self, plan_id: str, owner: str, advice: str = "") -> None:
        """`advice` is what to do about an owner that seems not to go on."""
        look = f"look with `agents plan status {plan_id}`"
        super().__init__(
            f"plan {plan_id} is in use by {owner}",
            f"{advice}; {look}" if advice else f"wait for it, or {look}",
        )

    def stoppable(self) -> "PlanLockedError":
        """The same for a command that can stop the owner first."""
        self.hint = f"stop it first by adding --now, or {self.hint}"
        return self


class PlanOvertakenError(PlanError, code="plan-overtaken"):
    """This process was taken for dead, and another one goes on with the plan."""

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} was taken over by another process: this one was silent too long,"
            " and stops without writing anything more",
            f"see how the plan stands with `agents plan status {plan_id}`",
        )


class ChildSettledError(PlanError, code="child-settled"):
    """A child plan to which nothing more can be done by itself."""

    def __init__(self, plan_id: str, name: str, parent_id: str, what: str) -> None:
        super().__init__(
            f"plan {plan_id} is the child `{name}`, which {what} plan {parent_id}",
            f"work on the parent: agents plan status {parent_id}",
        )


class ChildApplyError(PlanError, code="child-apply"):
    """Only the plan at the top reaches the project."""

    def __init__(self, plan_id: str, name: str, parent_id: str, root_id: str) -> None:
        super().__init__(
            f"plan {plan_id} is the child `{name}` of plan {parent_id}; "
            "its result goes to its parent, not to the project",
            f"agents plan apply {root_id}",
        )


class SubplansFailedError(PlanError, code="subplans-failed"):
    """Children whose results are missing in the parent; the others are merged."""


class NoConflictError(PlanError, code="no-conflict"):
    """A side was chosen where no child of the plan conflicts."""

    def __init__(self, plan_id: str, below: Sequence[str] = ()) -> None:
        hint = f"see `agents plan status {plan_id}`"
        if below:
            hint = f"children of these do, and are decided there: {', '.join(below)}"
        super().__init__(f"no child of plan {plan_id} conflicts: there is nothing to decide", hint)


class DecisionNotFoundError(PlanError, code="decision-not-found"):
    def __init__(self, decision_id: str) -> None:
        super().__init__(
            f"there is no decision {decision_id}",
            "see them with `agents plan tree <PLAN_ID>`; a decision is named by its step's number,"
            " a part of its name, or its id",
        )


class DecisionAmbiguousError(PlanError, code="decision-ambiguous"):
    def __init__(self, prefix: str, matches: Sequence[str]) -> None:
        super().__init__(
            f"{prefix!r} fits several decisions:\n{_listing(matches)}",
            "say which by its number, or by the letters before its name",
        )


class StepFailedError(PlanError, code="step-failed"):
    """A step failed, so the plan is errored; the plan itself holds the details."""

    def __init__(self, plan_id: str, step: str, reason: str, hint: str | None = None) -> None:
        go_on = hint or f"go on with `agents plan resume {plan_id}`"
        super().__init__(
            f"step {step} failed: {reason}", f"see `agents plan errors {plan_id}`; {go_on}"
        )


class EffectUncertainError(PlanError, code="effect-uncertain"):
    """A step whose effect outside the sandboxes may have happened, and is not repeated unasked."""

    def __init__(self, plan_id: str, step: str, effects: Sequence[str]) -> None:
        super().__init__(
            f"step {step} may already have had its effect outside ({'; '.join(effects)}), "
            "so it was not run again",
            f"look whether it happened, then {_choices(plan_id)}",
        )


class EffectDoneError(PlanError, code="effect-already-done"):
    """A step whose effect outside the sandboxes has happened, and is not repeated unasked."""

    def __init__(self, plan_id: str, step: str, effects: Sequence[str]) -> None:
        super().__init__(
            f"step {step} already had its effect outside ({'; '.join(effects)}), "
            "which the rollback could not take back, so it was not run again",
            _choices(plan_id),
        )


class ApplyConflictError(PlanError, code="apply-conflict"):
    """The project moved on in files the plan changed too; the project is as it was."""

    def __init__(
        self,
        plan_id: str,
        resource: str,
        files: Sequence[str],
        why: str,
        hint: str | None = None,
        sides: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        usual = (
            f"commit or put away your changes to these files and run `agents plan apply {plan_id}` "
            "again, or keep the result on a branch with --branch NAME"
        )
        super().__init__(
            f"`{resource}` has conflicts, so nothing was applied ({why}):\n"
            + _listing(line for file in files for line in (file, *_below(file, sides or {}))),
            hint or usual,
        )
        self.files = tuple(files)
        self.sides = sides or {}
        self.resource = resource
        self.why = why


class ApplyRefusedError(PlanError, code="apply-refused"):
    """Apply cannot be done in the project's present state; nothing was changed."""


class NothingIgnoredError(PlanError, code="nothing-ignored"):
    """Ignored paths are to be applied of which nothing was changed; nothing was applied."""

    def __init__(self, paths: Sequence[str], changed: Sequence[str]) -> None:
        told = f": there is {', '.join(changed)}" if changed else ", or go without --with-ignored"
        super().__init__(
            f"nothing that is ignored was changed in {', '.join(paths)}, so nothing was applied",
            f"name a path below the project where something was{told}",
        )


class ValidationUnmetError(PlanError, code="validation-unmet"):
    """A required validation stands in the way of an apply; nothing was changed."""

    def __init__(self, plan_id: str, problems: Sequence[str]) -> None:
        super().__init__(
            f"plan {plan_id} has not passed what its action requires:\n{_listing(problems)}",
            f"see `agents plan errors {plan_id}`; roll back or correct the plan, and run "
            f"`agents plan execute {plan_id}` again",
        )


class ApplyEditsKeptError(PlanError, code="apply-edits-kept"):
    """An apply was given up; what the user changed on top of it meanwhile was not taken back."""

    def __init__(self, plan_id: str, cause: str, files: Sequence[str]) -> None:
        super().__init__(
            f"{cause}\nEverything was taken back but what you have changed meanwhile on top of the "
            f"plan's result:\n{_listing(files)}",
            "these hold your version; bring them to what you want by hand, then run "
            f"`agents plan apply {plan_id}` again",
        )
        self.files = tuple(files)


class ApplyPendingError(PlanError, code="apply-pending"):
    """An apply that could be neither finished nor taken back; the intent is still stored."""

    def __init__(self, plan_id: str, cause: str, obstacle: str) -> None:
        super().__init__(
            f"{cause}\nWhat was applied already could not be taken back: {obstacle}",
            f"remove that obstacle, then finish it with `agents plan apply {plan_id}`",
        )


class DeclinedError(PlanError, code="declined"):
    """The person who was asked said no."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} was declined; nothing was changed", "use --yes to skip asking"
        )


class InterruptedPlanError(PlanError, code="interrupted", exit_code=130):
    def __init__(self, plan_id: str, effects: Sequence[str] = ()) -> None:
        doubt = f", but outside it may have done this: {'; '.join(effects)}" if effects else ""
        super().__init__(
            f"plan {plan_id} was interrupted; the running step was undone{doubt}",
            f"go on with `agents plan resume {plan_id}`",
        )


class InterruptedProgramError(PlanError, code="program-interrupted", exit_code=130):
    """A person ran it, and so nothing of what it did was undone."""

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"the program of plan {plan_id} was interrupted; what it did until then is kept",
            f"take what is there: agents apply --as-it-is {plan_id}; take back its last step:"
            f" agents undo --plan {plan_id}; or start it again: agents plan resume {plan_id}",
        )


class InterruptedApplyError(PlanError, code="apply-interrupted", exit_code=130):
    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"applying plan {plan_id} was interrupted; the project is as it was",
            f"agents plan apply {plan_id}",
        )


def _choices(plan_id: str) -> str:
    return (
        f"do it again with `agents plan resume --effects repeat {plan_id}`, "
        f"or take it as done with `agents plan resume --effects skip {plan_id}`"
    )


def _below(file: str, sides: Mapping[str, Sequence[str]]) -> Iterator[str]:
    return (f"  {line}" for line in sides.get(file, ()))


def _listing(items: Iterable[str]) -> str:
    return "\n".join(f"  {item}" for item in items)
