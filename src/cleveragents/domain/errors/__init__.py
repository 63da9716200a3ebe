"""The error tree. Every error says what happened, to which thing, and what to type next.

PlanError                      exit 1: the operation was refused or failed
├── UsageError                 exit 2: the call itself was wrong
│   ├── InvalidIdError           invalid-id
│   ├── CheckpointRequiredError  checkpoint-required
│   ├── LabelIsNumberError       label-is-a-number
│   ├── ConfigKeyError           unknown-config-key
│   ├── ConfigValueError         invalid-config-value
│   ├── ConfigFileError          config-file
│   ├── ConfirmationNeededError  confirmation-needed
│   └── NothingToRunError        nothing-to-run
├── ActionFileError            action-invalid
├── ActionNotFoundError        action-not-found
├── StepFileError              step-file-invalid
├── PlanNotFoundError          plan-not-found
├── NoPlanHereError            no-plan-here
├── PlanElsewhereError         plan-elsewhere
├── PlanAmbiguousError         plan-ambiguous
├── PlanStateError             plan-state
├── PlanAppliedError           plan-applied
├── PlanCancelledError         plan-cancelled
├── PlanLockedError            plan-locked
├── PlanOvertakenError         plan-overtaken
├── ChildSettledError          child-settled
├── ChildApplyError            child-apply
├── SubplansFailedError        subplans-failed
├── NoConflictError            no-conflict
├── DecisionNotFoundError      decision-not-found
├── DecisionAmbiguousError     decision-ambiguous
├── CorrectionNotFoundError    correction-not-found
├── CorrectionRefusedError     correction-refused
├── CheckpointNotFoundError    checkpoint-not-found
├── CheckpointAmbiguousError   checkpoint-ambiguous
├── CheckpointMismatchError    checkpoint-of-another-plan
├── CheckpointNeededError      checkpoint-needed
├── NothingToUndoError         nothing-to-undo
├── NothingToRedoError         nothing-to-redo
├── PathNotFoundError          path-not-found
├── LabelTakenError            label-taken
├── SandboxMissingError        sandbox-missing
├── ProjectMissingError        project-missing
├── BaseLostError              base-lost
├── SandboxError               sandbox-failed
├── RepositoryNotTrustedError  repository-not-trusted
├── FileEncodingError          file-encoding
├── ResourceError              resource-unusable
├── SnapshotDamagedError       snapshot-damaged
├── SnapshotFailedError        snapshot-failed
├── StoreFullError             store-full
├── RestoreFailedError         restore-failed
├── RollbackPendingError       rollback-pending
├── StepFailedError            step-failed
├── EffectUncertainError       effect-uncertain
├── EffectDoneError            effect-already-done
├── ToolError                  tool-failed
│   ├── ToolNotFoundError        tool-not-found
│   ├── ToolArgumentError        tool-arguments
│   ├── PathOutsideSandboxError  path-outside-sandbox
│   ├── ToolTimeoutError         tool-timeout
│   ├── ToolLimitError           tool-limit
│   ├── ToolNotEndedError        tool-not-ended
│   ├── ToolNotStartedError      tool-not-started
│   │   └── ToolNotConfinedError   tool-not-confined
│   ├── ToolRefusedError         tool-refused
│   └── ToolWroteError           tool-wrote
├── ActorError                 actor-failed
│   ├── ActorUnavailableError    actor-unavailable
│   ├── ProgramFailedError       program-failed
│   ├── BudgetExhaustedError     budget-exhausted
│   ├── ModelKeyMissingError     model-key-missing
│   ├── ModelUnreachableError    model-unreachable
│   ├── ModelRefusedError        model-refused
│   ├── ContextOverflowError     context-overflow
│   ├── ModelAnswerError         model-answer
│   └── ModelDeclinedError       model-declined
├── ApplyConflictError         apply-conflict
├── ApplyRefusedError          apply-refused
├── NothingIgnoredError        nothing-ignored
├── ValidationUnmetError       validation-unmet
├── ApplyEditsKeptError        apply-edits-kept
├── ApplyPendingError          apply-pending
├── ApplyNotKeptError          apply-not-kept
├── TimelineClosedError        timeline-closed
├── ApplyUndoneError           apply-undone
├── MoveBlockedError           undo-blocked
├── MovePendingError           undo-pending
├── ApplyCheckFailedError      apply-check-failed
├── PlaceRefusedError          place-refused
├── InPlaceRefusedError        in-place-refused
├── PlaceTakenError            place-taken
├── TimelineTermsError         timeline-terms
├── RepositoryBusyError        repository-busy
├── ChangedByOthersError       changed-by-others
├── StillRunningError          still-running
├── DatabaseInUseError         database-in-use
├── ProgramNotFoundError       program-not-found
├── DeclinedError              declined
├── InterruptedPlanError       interrupted (exit 130)
├── InterruptedProgramError    program-interrupted (exit 130)
├── InterruptedApplyError      apply-interrupted (exit 130)
├── InterruptedMoveError       undo-interrupted (exit 130)
├── DatabaseBusyError          database-busy
├── DatabaseDamagedError       database-damaged
├── DatabaseTooNewError        database-too-new
├── DatabaseTooOldError        database-too-old
├── DatabaseUnusableError      database-unusable
├── DataDirError               data-dir-unusable
├── GitUnavailableError        git-unavailable
├── CurrentFolderError         current-folder-gone
├── HomeUnknownError           home-unknown
├── MachineError               machine-error
├── OutOfResourcesError        out-of-resources
├── OutputNotWrittenError      output-not-written
└── InterruptedCommandError    command-interrupted (exit 130)
"""

# All that is in these modules, so that a new error is written down once, and drawn above.
from cleveragents.domain.errors.actors import *
from cleveragents.domain.errors.base import *
from cleveragents.domain.errors.checkpoints import *
from cleveragents.domain.errors.machine import *
from cleveragents.domain.errors.plans import *
from cleveragents.domain.errors.usage import *
from cleveragents.domain.errors.work import *
