"""What can go wrong with an action or a plan."""

from collections.abc import Sequence

from cleveragents.domain.errors.base import PlanError


class CorrectionNotFoundError(PlanError):
    code = "correction-not-found"

    def __init__(self, correction_id: str) -> None:
        super().__init__(
            f"there is no correction {correction_id}",
            "see the corrections of a decision with `agents plan explain <DECISION_ID>`",
        )


class CorrectionRefusedError(PlanError):
    """A decision that cannot be corrected, with the reason; nothing was changed."""

    code = "correction-refused"


class ActionFileError(PlanError):
    """An action file that cannot be used; nothing was created from it."""

    code = "action-invalid"

    def __init__(self, path: str, problems: Sequence[str]) -> None:
        listing = "\n".join(f"  {problem}" for problem in problems)
        from shlex import quote  # noqa: PLC0415 - only this mistake needs it

        super().__init__(
            f"{path} is not a usable action file:\n{listing}",
            f"correct it until `agents action check {quote(path)}` is content; nothing was created",
        )
        self.problems = tuple(problems)


class StepFileError(PlanError):
    """A file whose step cannot take the place of another; nothing was changed."""

    code = "step-file-invalid"

    def __init__(self, path: str, problems: Sequence[str]) -> None:
        listing = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(
            f"{path} does not hold one usable step:\n{listing}",
            "correct it and repeat the command; nothing was changed",
        )


class ActionNotFoundError(PlanError):
    code = "action-not-found"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"cannot read the action file {path}: {reason}",
            "give the path of a YAML file that is there; `ls *.yaml` shows those of this folder",
        )


class PlanNotFoundError(PlanError):
    """None of this id; without one, there is no plan at all."""

    code = "plan-not-found"

    def __init__(self, plan_id: str | None = None) -> None:
        if plan_id is None:
            super().__init__("there is no plan yet", "make one with `agents plan use ACTION.yaml`")
        else:
            hint = "list the plans with `agents plan list`"
            super().__init__(f"there is no plan {plan_id}", hint)


class NoPlanHereError(PlanError):
    """`latest` was said where nothing was planned; a plan of elsewhere must never be guessed."""

    code = "no-plan-here"

    def __init__(self, folder: str, elsewhere: Sequence[str], more: int) -> None:
        listing = "\n".join(f"  {line}" for line in elsewhere)
        rest = f"\n  and {more} more: `agents plan list`" if more else ""
        super().__init__(
            f"no plan was made of {folder}, or of the repository or folder that it is in. The last"
            f" plans of other places:\n{listing}{rest}",
            "make one here with `agents plan use ACTION.yaml`, name one by its id, or say"
            " `--any latest` for the last one made anywhere",
        )


class PlanAmbiguousError(PlanError):
    code = "plan-ambiguous"

    def __init__(self, prefix: str, matches: Sequence[str]) -> None:
        listing = "\n".join(f"  {plan_id}" for plan_id in matches)
        super().__init__(
            f"several plans begin with {prefix}:\n{listing}", "type more of the one you mean"
        )


class PlanStateError(PlanError):
    """The plan is in a state in which this cannot be done."""

    code = "plan-state"


class PlanAppliedError(PlanError):
    code = "plan-applied"

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} is applied: its changes are part of your project now",
            "undo them in the project itself, for example with `git revert`; "
            "start again with `agents plan use`",
        )


class PlanCancelledError(PlanError):
    code = "plan-cancelled"

    def __init__(self, plan_id: str) -> None:
        super().__init__(f"plan {plan_id} is cancelled", "start again with `agents plan use`")


class PlanLockedError(PlanError):
    code = "plan-locked"

    def __init__(self, plan_id: str, owner: str, advice: str = "") -> None:
        """`advice` is what to do about an owner that seems not to go on."""
        look = f"look with `agents plan status {plan_id}`"
        super().__init__(
            f"plan {plan_id} is in use by {owner}",
            f"{advice}; {look}" if advice else f"wait for it, or {look}",
        )


class PlanOvertakenError(PlanError):
    """This process was taken for dead, and another one goes on with the plan."""

    code = "plan-overtaken"

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} was taken over by another process: this one was silent too long,"
            " and stops without writing anything more",
            f"see how the plan stands with `agents plan status {plan_id}`",
        )


class ChildSettledError(PlanError):
    """A child plan to which nothing more can be done by itself."""

    code = "child-settled"

    def __init__(self, plan_id: str, name: str, parent_id: str, what: str) -> None:
        super().__init__(
            f"plan {plan_id} is the child `{name}`, which {what} plan {parent_id}",
            f"work on the parent: agents plan status {parent_id}",
        )


class ChildApplyError(PlanError):
    """Only the plan at the top reaches the project."""

    code = "child-apply"

    def __init__(self, plan_id: str, name: str, parent_id: str, root_id: str) -> None:
        super().__init__(
            f"plan {plan_id} is the child `{name}` of plan {parent_id}; "
            "its result goes to its parent, not to the project",
            f"agents plan apply {root_id}",
        )


class SubplansFailedError(PlanError):
    """Children whose results are missing in the parent; the others are merged."""

    code = "subplans-failed"


class NoConflictError(PlanError):
    """A side was chosen where no child of the plan conflicts."""

    code = "no-conflict"

    def __init__(self, plan_id: str, below: Sequence[str] = ()) -> None:
        hint = f"see `agents plan status {plan_id}`"
        if below:
            hint = f"children of these do, and are decided there: {', '.join(below)}"
        super().__init__(f"no child of plan {plan_id} conflicts: there is nothing to decide", hint)


class DecisionNotFoundError(PlanError):
    code = "decision-not-found"

    def __init__(self, decision_id: str) -> None:
        super().__init__(
            f"there is no decision {decision_id}", "list them with `agents plan tree <PLAN_ID>`"
        )


class DecisionAmbiguousError(PlanError):
    code = "decision-ambiguous"

    def __init__(self, prefix: str, matches: Sequence[str]) -> None:
        listing = "\n".join(f"  {decision_id}" for decision_id in matches)
        super().__init__(
            f"several decisions begin with {prefix}:\n{listing}", "type more of the one you mean"
        )


class StepFailedError(PlanError):
    """A step failed, so the plan is errored; the plan itself holds the details."""

    code = "step-failed"

    def __init__(self, plan_id: str, step: str, reason: str, hint: str | None = None) -> None:
        go_on = hint or f"go on with `agents plan resume {plan_id}`"
        super().__init__(
            f"step {step} failed: {reason}", f"see `agents plan errors {plan_id}`; {go_on}"
        )


class EffectUncertainError(PlanError):
    """A step whose effect outside the sandboxes may have happened, and is not repeated unasked."""

    code = "effect-uncertain"

    def __init__(self, plan_id: str, step: str, effects: Sequence[str]) -> None:
        super().__init__(
            f"step {step} may already have had its effect outside ({'; '.join(effects)}), "
            "so it was not run again",
            f"look whether it happened, then {_choices(plan_id)}",
        )


class EffectDoneError(PlanError):
    """A step whose effect outside the sandboxes has happened, and is not repeated unasked."""

    code = "effect-already-done"

    def __init__(self, plan_id: str, step: str, effects: Sequence[str]) -> None:
        super().__init__(
            f"step {step} already had its effect outside ({'; '.join(effects)}), "
            "which the rollback could not take back, so it was not run again",
            _choices(plan_id),
        )


class ApplyConflictError(PlanError):
    """The project moved on in files the plan changed too; the project is as it was."""

    code = "apply-conflict"

    def __init__(
        self,
        plan_id: str,
        resource: str,
        files: Sequence[str],
        why: str,
        hint: str | None = None,
    ) -> None:
        listing = "\n".join(f"  {file}" for file in files)
        usual = (
            f"commit or put away your changes to these files and run `agents plan apply {plan_id}` "
            "again, or keep the result on a branch with --branch NAME"
        )
        super().__init__(
            f"`{resource}` has conflicts, so nothing was applied ({why}):\n{listing}",
            hint or usual,
        )
        self.files = tuple(files)


class ApplyRefusedError(PlanError):
    """Apply cannot be done in the project's present state; nothing was changed."""

    code = "apply-refused"


class ValidationUnmetError(PlanError):
    """A required validation stands in the way of an apply; nothing was changed."""

    code = "validation-unmet"

    def __init__(self, plan_id: str, problems: Sequence[str]) -> None:
        listing = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(
            f"plan {plan_id} has not passed what its action requires:\n{listing}",
            f"see `agents plan errors {plan_id}`; roll back or correct the plan, and run "
            f"`agents plan execute {plan_id}` again",
        )


class ApplyEditsKeptError(PlanError):
    """An apply was given up; what the user changed on top of it meanwhile was not taken back."""

    code = "apply-edits-kept"

    def __init__(self, plan_id: str, cause: str, files: Sequence[str]) -> None:
        listing = "\n".join(f"  {name}" for name in files)
        super().__init__(
            f"{cause}\nEverything was taken back but what you have changed meanwhile on top of the "
            f"plan's result:\n{listing}",
            "these hold your version; bring them to what you want by hand, then run "
            f"`agents plan apply {plan_id}` again",
        )
        self.files = tuple(files)


class ApplyPendingError(PlanError):
    """An apply that could be neither finished nor taken back; the intent is still stored."""

    code = "apply-pending"

    def __init__(self, plan_id: str, cause: str, obstacle: str) -> None:
        super().__init__(
            f"{cause}\nWhat was applied already could not be taken back: {obstacle}",
            f"remove that obstacle, then finish it with `agents plan apply {plan_id}`",
        )


class DeclinedError(PlanError):
    """The person who was asked said no."""

    code = "declined"

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} was declined; nothing was changed", "use --yes to skip asking"
        )


class InterruptedPlanError(PlanError):
    code = "interrupted"
    exit_code = 130

    def __init__(self, plan_id: str, effects: Sequence[str] = ()) -> None:
        doubt = f", but outside it may have done this: {'; '.join(effects)}" if effects else ""
        super().__init__(
            f"plan {plan_id} was interrupted; the running step was undone{doubt}",
            f"go on with `agents plan resume {plan_id}`",
        )


class InterruptedApplyError(PlanError):
    code = "apply-interrupted"
    exit_code = 130

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
