"""The exact names that the contract promises, written down once for all tests."""

ENVELOPE = {"command", "status", "exit_code", "data", "timing", "messages"}
TIMING = {"started", "duration_ms"}
ERROR = {"code", "message", "hint"}
STATUSES = {"ok", "warn", "error"}

CHECKPOINT_ROW = {
    "checkpoint_id",
    "group_id",
    "resource",
    "checkpoint_type",
    "label",
    "step_index",
    "decision_id",
    "state_hash",
    "size_bytes",
    "created_at",
    "reason",
    "source",
}
STATUS = {
    "confinement",
    "plan_id",
    "phase",
    "state",
    "action",
    "attempt",
    "progress",
    "timing",
    "execution",
    "sandboxes",
    "last_completed_step",
    "last_checkpoint_id",
}
EXECUTION = {"sandbox", "tool_calls", "files_modified", "child_plans", "checkpoints"}
SANDBOX = {"resource", "type", "strategy", "path", "status"}
FAILURE = {"message", "tool", "step", "checkpoint", "recoverable"}
ROLLBACK = {
    "rollback_summary": {"plan", "checkpoint", "label", "files_reverted"},
    "impact": {
        "child_plans_invalidated",
        "sandbox",
        "decisions_after_cp",
        "tool_calls_after_cp",
    },
    "post_rollback_state": {"phase", "state", "checkpoints_remaining"},
}
