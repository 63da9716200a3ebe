"""What can go wrong with checkpoints, snapshots and the way back."""

from collections.abc import Sequence

from cleveragents.domain.errors.base import PlanError


class CheckpointNotFoundError(PlanError, code="checkpoint-not-found"):
    def __init__(self, plan_id: str, wanted: str, gone: str = "") -> None:
        """`gone` says what became of one that there was."""
        what = f"plan {plan_id} has no checkpoint, group or label {wanted!r}"
        super().__init__(
            f"{what} any more: {gone}" if gone else what,
            f"list them with `agents plan checkpoint list {plan_id}`",
        )


class CheckpointAmbiguousError(PlanError, code="checkpoint-ambiguous"):
    def __init__(self, plan_id: str, wanted: str, matches: Sequence[str]) -> None:
        listing = "\n".join(f"  {line}" for line in matches)
        super().__init__(
            f"{wanted!r} fits {len(matches)} checkpoint groups:\n{listing}",
            "say which by its number, or by the letters before its name; see them all with"
            f" `agents plan checkpoint list {plan_id}`",
        )


class CheckpointMismatchError(PlanError, code="checkpoint-of-another-plan"):
    def __init__(self, wanted: str, owner_id: str, plan_id: str) -> None:
        super().__init__(
            f"checkpoint {wanted} belongs to plan {owner_id}, not to {plan_id}",
            f"list those of this plan with `agents plan checkpoint list {plan_id}`",
        )


class PathNotFoundError(PlanError, code="path-not-found"):
    def __init__(self, resource: str, path: str, checkpoint: str, meant: str | None) -> None:
        suggestion = f"; did you mean `{meant}`?" if meant else ""
        super().__init__(
            f"`{resource}` has no {path!r}, neither in checkpoint {checkpoint} nor now{suggestion}",
            "see the files that differ with `agents plan rollback --dry-run`, without --only",
        )


class CheckpointNeededError(PlanError, code="checkpoint-needed"):
    """A checkpoint that must not be deleted, with the reason."""

    def __init__(self, group_id: str, plan_id: str, reason: str) -> None:
        super().__init__(
            f"checkpoint group {group_id} cannot be deleted: {reason}",
            f"choose another one from `agents plan checkpoint list {plan_id}`",
        )


class LabelTakenError(PlanError, code="label-taken"):
    def __init__(self, label: str, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} already has a checkpoint labelled {label!r}",
            "choose another --label",
        )


class SnapshotDamagedError(PlanError, code="snapshot-damaged"):
    def __init__(self, resource: str, detail: str) -> None:
        super().__init__(
            f"the snapshot of `{resource}` is damaged: {detail}",
            "nothing was changed; choose another checkpoint: "
            "`agents plan checkpoint verify <PLAN_ID>` checks them all",
        )


class SnapshotFailedError(PlanError, code="snapshot-failed"):
    """A snapshot that could not be taken: there is no checkpoint then, and the step fails."""


class StoreFullError(PlanError, code="store-full"):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"this snapshot was not stored: all of them together may take {limit} bytes",
            "see `agents store status`, free room with `agents plan checkpoint delete`, "
            "or raise the limit with `agents config set store.max-size <SIZE>`",
        )


class RestoreFailedError(PlanError, code="restore-failed"):
    def __init__(self, resource: str, detail: str) -> None:
        super().__init__(
            f"the sandbox of `{resource}` could not be restored: {detail}",
            "the state before the rollback was put back; check the disk and try again",
        )


class RollbackPendingError(PlanError, code="rollback-pending"):
    """Neither the rollback nor taking it back worked; both can still be tried again."""

    def __init__(self, plan_id: str, reason: str, also: str) -> None:
        super().__init__(
            f"the rollback failed ({reason}), and so did putting the state before back ({also})",
            f"mend the cause, then finish it with `agents plan resume {plan_id}`",
        )


class NothingToUndoError(PlanError, code="nothing-to-undo"):
    """`changes` is how many there are to undo, where more were wanted."""

    def __init__(self, plan_id: str, changes: int) -> None:
        if changes:
            super().__init__(
                f"plan {plan_id} has {_changes(changes)} to undo, and not more",
                f"say how many: `agents undo --plan {plan_id} -n {changes}`, or go to the start:"
                f" `agents rewind --plan {plan_id} 0`",
            )
        else:
            super().__init__(
                f"there is nothing to undo in plan {plan_id}: its files are as they were at its"
                " start",
                f"see where it stands with `agents log {plan_id}`, or go forward again with"
                f" `agents redo --plan {plan_id}`",
            )

    @classmethod
    def not_begun(cls, plan_id: str) -> "NothingToUndoError":
        """Of a plan that has not started."""
        error = cls(plan_id, 0)
        error.hint = f"it has not started: agents plan execute {plan_id}"
        return error


class NothingToRedoError(PlanError, code="nothing-to-redo"):
    """`changes` is how many there are to redo, where more were wanted."""

    def __init__(self, plan_id: str, changes: int) -> None:
        if changes:
            super().__init__(
                f"plan {plan_id} has {_changes(changes)} to redo, and not more",
                f"say how many: `agents redo --plan {plan_id} -n {changes}`",
            )
        else:
            super().__init__(
                f"there is nothing to redo in plan {plan_id}: nothing was undone since the last"
                " thing that was done",
                f"what was left behind before that is in `agents log --all {plan_id}`; go to it"
                f" with `agents rewind --plan {plan_id} <CHECKPOINT_ID>`",
            )


class MoveBlockedError(PlanError, code="undo-blocked"):
    """Something that was changed since is in the way of taking an apply back, or of bringing it
    again; nothing was changed."""

    def __init__(self, plan_id: str, names: Sequence[str], command: str = "undo") -> None:
        super().__init__(
            f"the {command} of the apply of plan {plan_id} would lose what was changed since, so"
            f" nothing was done; in the way:\n{_listing(names)}",
            "put it away or bring it back to what it was, and say it again:"
            f" `agents {command} --plan {plan_id}`",
        )
        self.names = tuple(names)


class TimelineClosedError(PlanError, code="timeline-closed"):
    """In place, `apply` says that what was done shall stay."""

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"the timeline of plan {plan_id} was closed, and its checkpoints are gone; all files"
            " have stayed as they were",
            "the next one begins with the next program: `agents run --in-place -- …`",
        )


class ApplyNotKeptError(PlanError, code="apply-not-kept"):
    """What an apply has replaced is not there any more, or was never kept."""

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} is applied, and what that replaced is not kept any more",
            "take it back in the project itself, for example with `git revert`; how long it is"
            " kept says `agents config get apply.keep`",
        )


class ApplyUndoneError(PlanError, code="apply-undone"):
    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"the apply of plan {plan_id} is undone",
            f"bring it into the project again: `agents redo --plan {plan_id}`",
        )


class MovePendingError(PlanError, code="undo-pending"):
    """An undo or redo of an apply could be neither finished nor taken back."""

    def __init__(self, plan_id: str, reason: str, obstacles: str, command: str = "undo") -> None:
        super().__init__(
            f"the {command} of the apply of plan {plan_id} is half done: {reason}\nWhat was changed"
            f" already could not be put back: {obstacles}",
            f"see to it, and say it again: `agents {command} --plan {plan_id}`",
        )


class InterruptedMoveError(PlanError, code="undo-interrupted", exit_code=130):
    def __init__(self, plan_id: str, command: str = "undo") -> None:
        super().__init__(
            f"the {command} of the apply of plan {plan_id} was interrupted; the project is as it"
            " was",
            f"agents {command} --plan {plan_id}",
        )


def _changes(number: int) -> str:
    return "1 change" if number == 1 else f"{number} changes"


def _listing(items: Sequence[str]) -> str:
    return "\n".join(f"  {item}" for item in items)
