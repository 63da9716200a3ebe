"""Owns the error tree. Every error says what happened, to which thing, and what to type next.

PlanError                      exit 1: the operation was refused or failed
├── UsageError                 exit 2: the call itself was wrong
│   ├── InvalidIdError           invalid-id
│   ├── CheckpointRequiredError  checkpoint-required
│   ├── ConfigKeyError           unknown-config-key
│   ├── ConfigValueError         invalid-config-value
│   ├── ConfigFileError          config-file
│   └── ConfirmationNeededError  confirmation-needed
├── ActionFileError            action-invalid
├── ActionNotFoundError        action-not-found
├── PlanNotFoundError          plan-not-found
├── PlanStateError             plan-state
├── PlanAppliedError           plan-applied
├── PlanCancelledError         plan-cancelled
├── PlanLockedError            plan-locked
├── DecisionNotFoundError      decision-not-found
├── CheckpointNotFoundError    checkpoint-not-found
├── CheckpointAmbiguousError   checkpoint-ambiguous
├── CheckpointMismatchError    checkpoint-of-another-plan
├── CheckpointNeededError      checkpoint-needed
├── LabelTakenError            label-taken
├── SandboxMissingError        sandbox-missing
├── SandboxError               sandbox-failed
├── ResourceError              resource-unusable
├── SnapshotDamagedError       snapshot-damaged
├── SnapshotFailedError        snapshot-failed
├── RestoreFailedError         restore-failed
├── RollbackPendingError       rollback-pending
├── StepFailedError            step-failed
├── ToolError                  tool-failed
│   ├── ToolNotFoundError        tool-not-found
│   ├── ToolArgumentError        tool-arguments
│   ├── PathOutsideSandboxError  path-outside-sandbox
│   ├── ToolTimeoutError         tool-timeout
│   └── ToolRefusedError         tool-refused
├── ApplyConflictError         apply-conflict
├── ApplyRefusedError          apply-refused
├── DeclinedError              declined
├── InterruptedPlanError       interrupted (exit 130)
├── DatabaseBusyError          database-busy
├── DatabaseTooNewError        database-too-new
├── DatabaseUnusableError      database-unusable
├── DataDirError               data-dir-unusable
├── GitUnavailableError        git-unavailable
├── CurrentFolderError         current-folder-gone
├── MachineError               machine-error
└── InterruptedCommandError    command-interrupted (exit 130)
"""

from collections.abc import Sequence
from typing import ClassVar


class PlanError(Exception):
    """The root: `message` for people, `code` for programs, `hint` for the next thing to type."""

    code: ClassVar[str] = "plan-error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PlanError):
    code = "usage"
    exit_code = 2


class InvalidIdError(UsageError):
    code = "invalid-id"

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(
            f"{text!r} is not a {kind}: expected 26 letters and digits",
            "list the plans with `agents plan list`",
        )


class CheckpointRequiredError(UsageError):
    code = "checkpoint-required"

    def __init__(self, plan_id: str, available: Sequence[str]) -> None:
        listing = "\n".join(f"  {line}" for line in available) or "  (none yet)"
        super().__init__(
            f"say which checkpoint plan {plan_id} shall go back to. There are:\n{listing}",
            f"agents plan rollback {plan_id} <CHECKPOINT_ID>",
        )


class ConfigKeyError(UsageError):
    code = "unknown-config-key"

    def __init__(self, key: str, where: str, suggestion: str | None) -> None:
        meant = f"; did you mean `{suggestion}`?" if suggestion else ""
        super().__init__(
            f"unknown config key `{key}` in {where}{meant}",
            "see all keys with `agents config list`",
        )


class ConfigValueError(UsageError):
    code = "invalid-config-value"

    def __init__(self, key: str, where: str, problem: str) -> None:
        super().__init__(
            f"`{key}` in {where}: {problem}", f"set it with `agents config set {key} <VALUE>`"
        )


class ConfigFileError(UsageError):
    """A config file that cannot be read or written."""

    code = "config-file"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "correct that file, or use another one with --config-path")


class ConfirmationNeededError(UsageError):
    code = "confirmation-needed"

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"{operation} needs a confirmation, and there is no terminal to ask on",
            "repeat the command with --yes",
        )


class ActionFileError(PlanError):
    """An action file that cannot be used; nothing was created from it."""

    code = "action-invalid"

    def __init__(self, path: str, problems: Sequence[str]) -> None:
        listing = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(
            f"{path} is not a usable action file:\n{listing}",
            f"correct it and run `agents plan use {path}` again; nothing was created",
        )
        self.problems = tuple(problems)


class ActionNotFoundError(PlanError):
    code = "action-not-found"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"cannot read the action file {path}: {reason}", "agents plan use <ACTION.yaml>"
        )


class PlanNotFoundError(PlanError):
    code = "plan-not-found"

    def __init__(self, plan_id: str) -> None:
        super().__init__(f"there is no plan {plan_id}", "list the plans with `agents plan list`")


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

    def __init__(self, plan_id: str, owner: str) -> None:
        super().__init__(
            f"plan {plan_id} is in use by {owner}",
            f"wait for it, or look with `agents plan status {plan_id}`",
        )


class DecisionNotFoundError(PlanError):
    code = "decision-not-found"

    def __init__(self, decision_id: str) -> None:
        super().__init__(
            f"there is no decision {decision_id}", "list them with `agents plan tree <PLAN_ID>`"
        )


class CheckpointNotFoundError(PlanError):
    code = "checkpoint-not-found"

    def __init__(self, plan_id: str, wanted: str) -> None:
        super().__init__(
            f"plan {plan_id} has no checkpoint, group or label {wanted!r}",
            f"list them with `agents plan checkpoint list {plan_id}`",
        )


class CheckpointAmbiguousError(PlanError):
    code = "checkpoint-ambiguous"

    def __init__(self, plan_id: str, wanted: str, matches: Sequence[str]) -> None:
        super().__init__(
            f"{wanted!r} fits {len(matches)} checkpoint groups: {', '.join(matches)}",
            f"say which by its id; see them with `agents plan checkpoint list {plan_id}`",
        )


class CheckpointMismatchError(PlanError):
    code = "checkpoint-of-another-plan"

    def __init__(self, wanted: str, owner_id: str, plan_id: str) -> None:
        super().__init__(
            f"checkpoint {wanted} belongs to plan {owner_id}, not to {plan_id}",
            f"list those of this plan with `agents plan checkpoint list {plan_id}`",
        )


class CheckpointNeededError(PlanError):
    """A checkpoint that must not be deleted, with the reason."""

    code = "checkpoint-needed"

    def __init__(self, group_id: str, plan_id: str, reason: str) -> None:
        super().__init__(
            f"checkpoint group {group_id} cannot be deleted: {reason}",
            f"choose another one from `agents plan checkpoint list {plan_id}`",
        )


class LabelTakenError(PlanError):
    code = "label-taken"

    def __init__(self, label: str, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} already has a checkpoint labelled {label!r}",
            "choose another --label",
        )


class SandboxMissingError(PlanError):
    code = "sandbox-missing"

    def __init__(self, resource: str, path: str) -> None:
        super().__init__(
            f"the sandbox of `{resource}` is not at {path} any more",
            "put the folder back if it was moved, or cancel the plan with `agents plan cancel`",
        )


class SandboxError(PlanError):
    """A sandbox could not be made or read."""

    code = "sandbox-failed"


class ResourceError(PlanError):
    """A resource that a plan cannot work on, with what to do about it."""

    code = "resource-unusable"


class SnapshotDamagedError(PlanError):
    code = "snapshot-damaged"

    def __init__(self, resource: str, detail: str) -> None:
        super().__init__(
            f"the snapshot of `{resource}` is damaged: {detail}. Nothing was changed",
            "choose another checkpoint; `agents plan checkpoint verify <PLAN_ID>` checks them all",
        )


class SnapshotFailedError(PlanError):
    """A snapshot that could not be taken: there is no checkpoint then, and the step fails."""

    code = "snapshot-failed"


class RestoreFailedError(PlanError):
    code = "restore-failed"

    def __init__(self, resource: str, detail: str) -> None:
        super().__init__(
            f"the sandbox of `{resource}` could not be restored: {detail}",
            "the state before the rollback was put back; check the disk and try again",
        )


class RollbackPendingError(PlanError):
    """Neither the rollback nor taking it back worked; both can still be tried again."""

    code = "rollback-pending"

    def __init__(self, plan_id: str, reason: str, also: str) -> None:
        super().__init__(
            f"the rollback failed ({reason}), and so did putting the state before back ({also})",
            f"mend the cause, then finish it with `agents plan resume {plan_id}`",
        )


class StepFailedError(PlanError):
    """A step failed, so the plan is errored; the plan itself holds the details."""

    code = "step-failed"

    def __init__(self, plan_id: str, step: str, reason: str) -> None:
        super().__init__(
            f"step {step} failed: {reason}",
            f"see `agents plan errors {plan_id}`; go on with `agents plan resume {plan_id}`",
        )


class ToolError(PlanError):
    """A tool could not do its work."""

    code = "tool-failed"


class ToolNotFoundError(ToolError):
    code = "tool-not-found"

    def __init__(self, name: str, suggestion: str | None) -> None:
        meant = f"; did you mean `{suggestion}`?" if suggestion else ""
        super().__init__(f"unknown tool `{name}`{meant}", "see all tools with `agents tool list`")


class ToolArgumentError(ToolError):
    code = "tool-arguments"

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"{tool}: {problem}", "see its arguments with `agents tool list`")


class PathOutsideSandboxError(ToolError):
    code = "path-outside-sandbox"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path!r} is outside the sandbox: {reason}",
            "give a path relative to the resource, without `..`",
        )


class ToolTimeoutError(ToolError):
    code = "tool-timeout"

    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(
            f"{tool} was stopped after {seconds:g} seconds",
            "give the step more time with `timeout`, or set tool.timeout in the config",
        )


class ToolRefusedError(ToolError):
    """A write tool that may not run because no checkpoint can be made."""

    code = "tool-refused"


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

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"plan {plan_id} was interrupted; the running step was undone",
            f"go on with `agents plan resume {plan_id}`",
        )


class DatabaseBusyError(PlanError):
    code = "database-busy"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the database {path} is locked by another process",
            "try again in a moment; nothing was lost",
        )


class DatabaseTooNewError(PlanError):
    code = "database-too-new"

    def __init__(self, path: str, revision: str) -> None:
        super().__init__(
            f"the database {path} was written by a newer version (schema {revision})",
            "upgrade with `pip install -U cleveragents`, or use another --data-dir",
        )


class DatabaseUnusableError(PlanError):
    code = "database-unusable"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the database {path} cannot be used: {reason}",
            "check the file, or use another --data-dir",
        )


class DataDirError(PlanError):
    code = "data-dir-unusable"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the data folder {path} cannot be used: {reason}",
            "make it writable, or choose another with --data-dir or CLEVERAGENTS_DATA_DIR",
        )


class GitUnavailableError(PlanError):
    code = "git-unavailable"

    def __init__(self, reason: str) -> None:
        super().__init__(f"git cannot be used: {reason}", "install git 2.38 or newer")


class CurrentFolderError(PlanError):
    code = "current-folder-gone"

    def __init__(self) -> None:
        super().__init__("the current folder does not exist any more", "change to another folder")


class MachineError(PlanError):
    """The operating system refused something that no adapter foresaw, such as a full disk."""

    code = "machine-error"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the operating system refused: {reason}",
            "check the disk and the permissions, then run the command again",
        )


class InterruptedCommandError(PlanError):
    code = "command-interrupted"
    exit_code = 130

    def __init__(self) -> None:
        super().__init__(
            "interrupted", "run the command again; what was unfinished is mended first"
        )
