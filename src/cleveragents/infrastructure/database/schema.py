"""The tables of the metadata database, as SQLite takes them.

A change of them raises FORMAT. Columns that end in `_json` hold JSON, times are text (see `rows`);
docs/reference/database.md says what each table is for.
"""

FORMAT = 7
"""Kept in the file as its `user_version`."""

# A plan's action is beside its row and not in it: to change a row, SQLite goes over all of it. The
# row changes at every step; the action never does, and is the longer the more steps there are.
SCHEMA = """
CREATE TABLE plans (
    plan_id TEXT PRIMARY KEY NOT NULL, ordinal INTEGER NOT NULL UNIQUE, action_name TEXT NOT NULL,
    number INTEGER NOT NULL,
    phase TEXT NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL,
    last_completed_step INTEGER NOT NULL, last_checkpoint_id TEXT, rollback_target TEXT,
    safety_group TEXT, rollback_only_json TEXT NOT NULL, timeline INTEGER NOT NULL,
    seq INTEGER NOT NULL, actor_state_json TEXT NOT NULL, error_json TEXT,
    applied_json TEXT NOT NULL, created_at TEXT NOT NULL, started_at TEXT, finished_at TEXT,
    cancel_reason TEXT, lease_epoch INTEGER NOT NULL
);
CREATE INDEX ix_plans_action_name_number ON plans (action_name, number);
CREATE TABLE plan_numbers (action_name TEXT PRIMARY KEY NOT NULL, last INTEGER NOT NULL);
CREATE TABLE plan_actions (
    plan_id TEXT PRIMARY KEY NOT NULL REFERENCES plans (plan_id), action_json TEXT NOT NULL
);
CREATE TABLE installation (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, inode INTEGER NOT NULL
);
CREATE TABLE plan_resources (
    resource_id TEXT PRIMARY KEY NOT NULL, plan_id TEXT NOT NULL REFERENCES plans (plan_id),
    name TEXT NOT NULL, type TEXT NOT NULL, location TEXT NOT NULL, base TEXT NOT NULL,
    sandbox_path TEXT NOT NULL, status TEXT NOT NULL, include_json TEXT NOT NULL,
    exclude_json TEXT NOT NULL, checkpointable BOOLEAN NOT NULL, base_snapshot TEXT, boundary TEXT,
    kept_with TEXT, confinement_json TEXT NOT NULL, cut_out_json TEXT NOT NULL, branched_at TEXT,
    origin TEXT, intent_json TEXT, intent_needs_json TEXT NOT NULL, uncounted INTEGER NOT NULL,
    rebuilding_json TEXT, in_place BOOLEAN NOT NULL, details_json TEXT NOT NULL,
    UNIQUE (plan_id, name)
);
CREATE TABLE applied_changes (
    plan_id TEXT PRIMARY KEY NOT NULL REFERENCES plans (plan_id), side TEXT NOT NULL,
    until TEXT NOT NULL, changed_at TEXT NOT NULL, ways_json TEXT NOT NULL, heading TEXT,
    under_way_json TEXT NOT NULL, freed BOOLEAN NOT NULL
);
CREATE TABLE timelines (
    plan_id TEXT NOT NULL REFERENCES plans (plan_id), timeline INTEGER NOT NULL,
    parent_timeline INTEGER NOT NULL, parent_seq INTEGER NOT NULL, PRIMARY KEY (plan_id, timeline)
);
CREATE TABLE decisions (
    decision_id TEXT PRIMARY KEY NOT NULL, plan_id TEXT NOT NULL REFERENCES plans (plan_id),
    parent_id TEXT REFERENCES decisions (decision_id), timeline INTEGER NOT NULL,
    seq INTEGER NOT NULL, type TEXT NOT NULL, question TEXT NOT NULL, chosen TEXT NOT NULL,
    alternatives_json TEXT NOT NULL, rationale TEXT NOT NULL, confidence REAL,
    context_json TEXT NOT NULL, phase TEXT NOT NULL, step_index INTEGER, attempt INTEGER NOT NULL,
    superseded BOOLEAN NOT NULL, created_at TEXT NOT NULL
);
CREATE INDEX ix_decisions_plan_id_seq ON decisions (plan_id, seq);
CREATE TABLE decided_steps (
    decision_id TEXT PRIMARY KEY NOT NULL REFERENCES decisions (decision_id),
    plan_id TEXT NOT NULL REFERENCES plans (plan_id), step_json TEXT NOT NULL,
    actor_state_json TEXT NOT NULL
);
CREATE INDEX ix_decided_steps_plan_id ON decided_steps (plan_id);
CREATE TABLE actor_messages (
    plan_id TEXT NOT NULL REFERENCES plans (plan_id), key TEXT NOT NULL, parent TEXT,
    body TEXT NOT NULL, PRIMARY KEY (plan_id, key)
);
CREATE TABLE decision_dependencies (
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id),
    depends_on TEXT NOT NULL REFERENCES decisions (decision_id),
    plan_id TEXT NOT NULL REFERENCES plans (plan_id), why TEXT NOT NULL,
    PRIMARY KEY (decision_id, depends_on)
);
CREATE INDEX ix_decision_dependencies_depends_on ON decision_dependencies (depends_on);
CREATE INDEX ix_decision_dependencies_plan_id ON decision_dependencies (plan_id);
CREATE TABLE corrections (
    correction_id TEXT PRIMARY KEY NOT NULL, plan_id TEXT NOT NULL REFERENCES plans (plan_id),
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id), mode TEXT NOT NULL,
    guidance TEXT NOT NULL, status TEXT NOT NULL, target_group TEXT, safety_group TEXT,
    intervention_id TEXT, affected_json TEXT NOT NULL, kept_json TEXT NOT NULL,
    steps_json TEXT NOT NULL, restored_json TEXT NOT NULL, step_index INTEGER,
    replacement_json TEXT, created_at TEXT NOT NULL
);
CREATE INDEX ix_corrections_plan_id ON corrections (plan_id);
CREATE TABLE supersessions (
    correction_id TEXT NOT NULL REFERENCES corrections (correction_id),
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id),
    plan_id TEXT NOT NULL REFERENCES plans (plan_id), timeline INTEGER NOT NULL,
    seq INTEGER NOT NULL, PRIMARY KEY (correction_id, decision_id)
);
CREATE INDEX ix_supersessions_plan_id ON supersessions (plan_id);
CREATE TABLE unchecked_decisions (
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id), timeline INTEGER NOT NULL,
    seq INTEGER NOT NULL, plan_id TEXT NOT NULL REFERENCES plans (plan_id), why TEXT NOT NULL,
    PRIMARY KEY (decision_id, timeline, seq)
);
CREATE INDEX ix_unchecked_decisions_plan_id ON unchecked_decisions (plan_id);
CREATE TABLE subplans (
    plan_id TEXT PRIMARY KEY NOT NULL REFERENCES plans (plan_id),
    parent_id TEXT NOT NULL REFERENCES plans (plan_id),
    root_id TEXT NOT NULL REFERENCES plans (plan_id),
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id), name TEXT NOT NULL,
    position_in_step INTEGER NOT NULL, timeline INTEGER NOT NULL, seq INTEGER NOT NULL,
    outcome TEXT NOT NULL, invalidated BOOLEAN NOT NULL, retries INTEGER NOT NULL,
    reason TEXT NOT NULL, conflicts_json TEXT NOT NULL, merges_json TEXT NOT NULL,
    losses_json TEXT NOT NULL
);
CREATE INDEX ix_subplans_parent_id ON subplans (parent_id);
CREATE INDEX ix_subplans_root_id ON subplans (root_id);
CREATE TABLE tool_calls (
    call_id TEXT PRIMARY KEY NOT NULL, plan_id TEXT NOT NULL REFERENCES plans (plan_id),
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id), timeline INTEGER NOT NULL,
    seq INTEGER NOT NULL, step_index INTEGER NOT NULL, tool TEXT NOT NULL,
    arguments_json TEXT NOT NULL, status TEXT NOT NULL, output TEXT NOT NULL,
    values_json TEXT NOT NULL, error TEXT, changes_json TEXT NOT NULL, touched_json TEXT NOT NULL,
    reach_json TEXT NOT NULL, side_effects_json TEXT NOT NULL, started_at TEXT NOT NULL,
    finished_at TEXT NOT NULL, undone BOOLEAN NOT NULL
);
CREATE INDEX ix_tool_calls_plan_id_seq ON tool_calls (plan_id, seq);
CREATE TABLE effects (
    effect_id TEXT PRIMARY KEY NOT NULL, plan_id TEXT NOT NULL REFERENCES plans (plan_id),
    decision_id TEXT NOT NULL REFERENCES decisions (decision_id), timeline INTEGER NOT NULL,
    seq INTEGER NOT NULL, step_index INTEGER NOT NULL, tool TEXT NOT NULL,
    arguments_json TEXT NOT NULL, arguments_hash TEXT NOT NULL, effects_json TEXT NOT NULL,
    state TEXT NOT NULL, output TEXT NOT NULL, values_json TEXT NOT NULL, compensate TEXT,
    stands_for TEXT REFERENCES effects (effect_id), error TEXT, started_at TEXT NOT NULL,
    finished_at TEXT
);
CREATE INDEX ix_effects_plan_id_seq ON effects (plan_id, seq);
CREATE INDEX ix_effects_plan_id_step_index ON effects (plan_id, step_index);
CREATE TABLE checkpoint_groups (
    group_id TEXT PRIMARY KEY NOT NULL, plan_id TEXT NOT NULL REFERENCES plans (plan_id),
    timeline INTEGER NOT NULL, seq INTEGER NOT NULL,
    decision_id TEXT REFERENCES decisions (decision_id), step_index INTEGER NOT NULL,
    reason TEXT NOT NULL, source TEXT NOT NULL, phase TEXT NOT NULL, label TEXT NOT NULL,
    labelled_by_hand BOOLEAN NOT NULL, state_hash TEXT NOT NULL, created_at TEXT NOT NULL,
    last_completed_step INTEGER NOT NULL, attempt INTEGER NOT NULL, actor_state_json TEXT NOT NULL,
    superseded BOOLEAN NOT NULL
);
CREATE INDEX ix_checkpoint_groups_plan_id_seq ON checkpoint_groups (plan_id, seq);
CREATE TABLE checkpoints (
    checkpoint_id TEXT PRIMARY KEY NOT NULL,
    group_id TEXT NOT NULL REFERENCES checkpoint_groups (group_id) ON DELETE CASCADE,
    plan_id TEXT NOT NULL REFERENCES plans (plan_id),
    decision_id TEXT REFERENCES decisions (decision_id),
    resource_id TEXT REFERENCES plan_resources (resource_id), checkpoint_type TEXT NOT NULL,
    sandbox_ref TEXT NOT NULL, filesystem_path TEXT NOT NULL, size_bytes INTEGER NOT NULL,
    created_at TEXT NOT NULL, step_index INTEGER NOT NULL, state_hash TEXT NOT NULL,
    label TEXT NOT NULL, metadata_json TEXT NOT NULL
);
CREATE INDEX ix_checkpoints_group_id ON checkpoints (group_id);
CREATE TABLE checkpoint_resource_states (
    group_id TEXT NOT NULL REFERENCES checkpoint_groups (group_id) ON DELETE CASCADE,
    resource_id TEXT NOT NULL REFERENCES plan_resources (resource_id), snapshot TEXT NOT NULL,
    state_hash TEXT NOT NULL, boundary TEXT NOT NULL, PRIMARY KEY (group_id, resource_id)
);
CREATE TABLE pruned_checkpoints (
    checkpoint_id TEXT PRIMARY KEY NOT NULL, group_id TEXT NOT NULL,
    plan_id TEXT NOT NULL REFERENCES plans (plan_id), label TEXT NOT NULL, reason TEXT NOT NULL,
    pruned_at TEXT NOT NULL
);
CREATE INDEX ix_pruned_checkpoints_plan_id ON pruned_checkpoints (plan_id)
"""
