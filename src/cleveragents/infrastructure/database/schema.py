"""The table definitions, for migrations only: the everyday path never imports SQLAlchemy."""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

plans = Table(
    "plans",
    metadata,
    Column("plan_id", Text, primary_key=True),
    Column("ordinal", Integer, nullable=False, unique=True),
    Column("action_name", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("last_completed_step", Integer, nullable=False),
    Column("last_checkpoint_id", Text),
    Column("rollback_target", Text),
    Column("safety_group", Text),
    Column("rollback_only_json", Text, nullable=False),
    Column("timeline", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("actor_state_json", Text, nullable=False),
    Column("error_json", Text),
    Column("applied_json", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("started_at", Text),
    Column("finished_at", Text),
    Column("lease_epoch", Integer, nullable=False),
)

# Beside the plan and not in it: to change a row, SQLite goes over all of it. A plan's row changes
# at every step, and its action, which never changes, is the longer the more steps there are.
plan_actions = Table(
    "plan_actions",
    metadata,
    Column("plan_id", Text, ForeignKey("plans.plan_id"), primary_key=True),
    Column("action_json", Text, nullable=False),
)

installation = Table(
    "installation",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("inode", Integer, nullable=False),
)

plan_resources = Table(
    "plan_resources",
    metadata,
    Column("resource_id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("base", Text, nullable=False),
    Column("sandbox_path", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("include_json", Text, nullable=False),
    Column("exclude_json", Text, nullable=False),
    Column("checkpointable", Boolean, nullable=False),
    Column("base_snapshot", Text),
    Column("boundary", Text),
    Column("details_json", Text, nullable=False),
    UniqueConstraint("plan_id", "name"),
)

timelines = Table(
    "timelines",
    metadata,
    Column("plan_id", Text, ForeignKey("plans.plan_id"), primary_key=True),
    Column("timeline", Integer, primary_key=True),
    Column("parent_timeline", Integer, nullable=False),
    Column("parent_seq", Integer, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("decision_id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False),
    Column("parent_id", Text, ForeignKey("decisions.decision_id")),
    Column("timeline", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("chosen", Text, nullable=False),
    Column("alternatives_json", Text, nullable=False),
    Column("rationale", Text, nullable=False),
    Column("confidence", Float),
    Column("context_json", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("step_index", Integer),
    Column("attempt", Integer, nullable=False),
    Column("superseded", Boolean, nullable=False),
    Column("created_at", Text, nullable=False),
    Index(None, "plan_id", "seq"),
)

decided_steps = Table(
    "decided_steps",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.decision_id"), primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("step_json", Text, nullable=False),
    Column("actor_state_json", Text, nullable=False),
)

actor_messages = Table(
    "actor_messages",
    metadata,
    Column("plan_id", Text, ForeignKey("plans.plan_id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("parent", Text),
    Column("body", Text, nullable=False),
)

decision_dependencies = Table(
    "decision_dependencies",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.decision_id"), primary_key=True),
    Column("depends_on", Text, ForeignKey("decisions.decision_id"), primary_key=True, index=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("why", Text, nullable=False),
)

corrections = Table(
    "corrections",
    metadata,
    Column("correction_id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("decision_id", Text, ForeignKey("decisions.decision_id"), nullable=False),
    Column("mode", Text, nullable=False),
    Column("guidance", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("target_group", Text),
    Column("safety_group", Text),
    Column("intervention_id", Text),
    Column("affected_json", Text, nullable=False),
    Column("kept_json", Text, nullable=False),
    Column("steps_json", Text, nullable=False),
    Column("restored_json", Text, nullable=False),
    Column("step_index", Integer),
    Column("replacement_json", Text),
    Column("created_at", Text, nullable=False),
)

supersessions = Table(
    "supersessions",
    metadata,
    Column("correction_id", Text, ForeignKey("corrections.correction_id"), primary_key=True),
    Column("decision_id", Text, ForeignKey("decisions.decision_id"), primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("timeline", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
)

unchecked_decisions = Table(
    "unchecked_decisions",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.decision_id"), primary_key=True),
    Column("timeline", Integer, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("why", Text, nullable=False),
)

subplans = Table(
    "subplans",
    metadata,
    Column("plan_id", Text, ForeignKey("plans.plan_id"), primary_key=True),
    Column("parent_id", Text, ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("root_id", Text, ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("decision_id", Text, ForeignKey("decisions.decision_id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("position_in_step", Integer, nullable=False),
    Column("timeline", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("invalidated", Boolean, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("conflicts_json", Text, nullable=False),
    Column("merges_json", Text, nullable=False),
    Column("losses_json", Text, nullable=False),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False),
    Column("decision_id", Text, ForeignKey("decisions.decision_id"), nullable=False),
    Column("timeline", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("step_index", Integer, nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments_json", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("output", Text, nullable=False),
    Column("values_json", Text, nullable=False),
    Column("error", Text),
    Column("changes_json", Text, nullable=False),
    Column("touched_json", Text, nullable=False),
    Column("reach_json", Text, nullable=False),
    Column("side_effects_json", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text, nullable=False),
    Column("undone", Boolean, nullable=False),
    Index(None, "plan_id", "seq"),
)

effects = Table(
    "effects",
    metadata,
    Column("effect_id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False),
    Column("decision_id", Text, ForeignKey("decisions.decision_id"), nullable=False),
    Column("timeline", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("step_index", Integer, nullable=False),
    Column("tool", Text, nullable=False),
    Column("arguments_json", Text, nullable=False),
    Column("arguments_hash", Text, nullable=False),
    Column("effects_json", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("output", Text, nullable=False),
    Column("values_json", Text, nullable=False),
    Column("compensate", Text),
    Column("stands_for", Text, ForeignKey("effects.effect_id")),
    Column("error", Text),
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text),
    Index(None, "plan_id", "seq"),
    Index(None, "plan_id", "step_index"),
)

checkpoint_groups = Table(
    "checkpoint_groups",
    metadata,
    Column("group_id", Text, primary_key=True),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False),
    Column("timeline", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("decision_id", Text, ForeignKey("decisions.decision_id")),
    Column("step_index", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("labelled_by_hand", Boolean, nullable=False),
    Column("state_hash", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("last_completed_step", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("actor_state_json", Text, nullable=False),
    Column("superseded", Boolean, nullable=False),
    Index(None, "plan_id", "seq"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("checkpoint_id", Text, primary_key=True),
    Column(
        "group_id",
        Text,
        ForeignKey("checkpoint_groups.group_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False),
    Column("decision_id", Text, ForeignKey("decisions.decision_id")),
    Column("resource_id", Text, ForeignKey("plan_resources.resource_id")),
    Column("checkpoint_type", Text, nullable=False),
    Column("sandbox_ref", Text, nullable=False),
    Column("filesystem_path", Text, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("step_index", Integer, nullable=False),
    Column("state_hash", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("metadata_json", Text, nullable=False),
)

checkpoint_resource_states = Table(
    "checkpoint_resource_states",
    metadata,
    Column(
        "group_id",
        Text,
        ForeignKey("checkpoint_groups.group_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("resource_id", Text, ForeignKey("plan_resources.resource_id"), primary_key=True),
    Column("snapshot", Text, nullable=False),
    Column("state_hash", Text, nullable=False),
    Column("boundary", Text, nullable=False),
)

pruned_checkpoints = Table(
    "pruned_checkpoints",
    metadata,
    Column("checkpoint_id", Text, primary_key=True),
    Column("group_id", Text, nullable=False),
    Column("plan_id", Text, ForeignKey("plans.plan_id"), nullable=False, index=True),
    Column("label", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("pruned_at", Text, nullable=False),
)
