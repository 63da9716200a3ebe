"""The first schema: plans, resources, decisions, tool calls and checkpoints."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = None


def upgrade() -> None:

    _create_plans()
    op.create_table(
        "decisions",
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("timeline", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("chosen", sa.Text(), nullable=False),
        sa.Column("alternatives_json", sa.Text(), nullable=False),
        sa.Column("rationale", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("context_json", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        _leads_to("decisions", "parent_id", "decisions.decision_id"),
        _leads_to("decisions", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("decision_id", name=op.f("pk_decisions")),
    )
    op.create_index(op.f("ix_decisions_plan_id_seq"), "decisions", ["plan_id", "seq"], unique=False)
    op.create_table(
        "plan_resources",
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("base", sa.Text(), nullable=False),
        sa.Column("sandbox_path", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("include_json", sa.Text(), nullable=False),
        sa.Column("exclude_json", sa.Text(), nullable=False),
        sa.Column("checkpointable", sa.Boolean(), nullable=False),
        sa.Column("base_snapshot", sa.Text(), nullable=True),
        sa.Column("boundary", sa.Text(), nullable=True),
        sa.Column("details_json", sa.Text(), nullable=False),
        _leads_to("plan_resources", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("resource_id", name=op.f("pk_plan_resources")),
        sa.UniqueConstraint("plan_id", "name", name=op.f("uq_plan_resources_plan_id_name")),
    )
    op.create_table(
        "timelines",
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("timeline", sa.Integer(), nullable=False),
        sa.Column("parent_timeline", sa.Integer(), nullable=False),
        sa.Column("parent_seq", sa.Integer(), nullable=False),
        _leads_to("timelines", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("plan_id", "timeline", name=op.f("pk_timelines")),
    )
    op.create_table(
        "checkpoint_groups",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("timeline", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=True),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("labelled_by_hand", sa.Boolean(), nullable=False),
        sa.Column("state_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("last_completed_step", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("actor_state_json", sa.Text(), nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        _leads_to("checkpoint_groups", "decision_id", "decisions.decision_id"),
        _leads_to("checkpoint_groups", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("group_id", name=op.f("pk_checkpoint_groups")),
    )
    op.create_index(
        op.f("ix_checkpoint_groups_plan_id_seq"),
        "checkpoint_groups",
        ["plan_id", "seq"],
        unique=False,
    )
    op.create_table(
        "pruned_checkpoints",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("pruned_at", sa.Text(), nullable=False),
        _leads_to("pruned_checkpoints", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("checkpoint_id", name=op.f("pk_pruned_checkpoints")),
    )
    op.create_index(
        op.f("ix_pruned_checkpoints_plan_id"), "pruned_checkpoints", ["plan_id"], unique=False
    )
    op.create_table(
        "decided_steps",
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("step_json", sa.Text(), nullable=False),
        sa.Column("actor_state_json", sa.Text(), nullable=False),
        _leads_to("decided_steps", "decision_id", "decisions.decision_id"),
        _leads_to("decided_steps", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("decision_id", name=op.f("pk_decided_steps")),
    )
    op.create_index(op.f("ix_decided_steps_plan_id"), "decided_steps", ["plan_id"], unique=False)
    op.create_table(
        "actor_messages",
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        _leads_to("actor_messages", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("plan_id", "key", name=op.f("pk_actor_messages")),
    )
    op.create_table(
        "decision_dependencies",
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("depends_on", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        _leads_to("decision_dependencies", "decision_id", "decisions.decision_id"),
        _leads_to("decision_dependencies", "depends_on", "decisions.decision_id"),
        _leads_to("decision_dependencies", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("decision_id", "depends_on", name=op.f("pk_decision_dependencies")),
    )
    op.create_index(
        op.f("ix_decision_dependencies_plan_id"),
        "decision_dependencies",
        ["plan_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_decision_dependencies_depends_on"),
        "decision_dependencies",
        ["depends_on"],
        unique=False,
    )
    op.create_table(
        "corrections",
        sa.Column("correction_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("guidance", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("target_group", sa.Text(), nullable=True),
        sa.Column("safety_group", sa.Text(), nullable=True),
        sa.Column("intervention_id", sa.Text(), nullable=True),
        sa.Column("affected_json", sa.Text(), nullable=False),
        sa.Column("kept_json", sa.Text(), nullable=False),
        sa.Column("steps_json", sa.Text(), nullable=False),
        sa.Column("restored_json", sa.Text(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=True),
        sa.Column("replacement_json", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        _leads_to("corrections", "decision_id", "decisions.decision_id"),
        _leads_to("corrections", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("correction_id", name=op.f("pk_corrections")),
    )
    op.create_index(op.f("ix_corrections_plan_id"), "corrections", ["plan_id"], unique=False)
    op.create_table(
        "supersessions",
        sa.Column("correction_id", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("timeline", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        _leads_to("supersessions", "correction_id", "corrections.correction_id"),
        _leads_to("supersessions", "decision_id", "decisions.decision_id"),
        _leads_to("supersessions", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("correction_id", "decision_id", name=op.f("pk_supersessions")),
    )
    op.create_index(op.f("ix_supersessions_plan_id"), "supersessions", ["plan_id"], unique=False)
    op.create_table(
        "unchecked_decisions",
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("timeline", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        _leads_to("unchecked_decisions", "decision_id", "decisions.decision_id"),
        _leads_to("unchecked_decisions", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint(
            "decision_id", "timeline", "seq", name=op.f("pk_unchecked_decisions")
        ),
    )
    op.create_index(
        op.f("ix_unchecked_decisions_plan_id"), "unchecked_decisions", ["plan_id"], unique=False
    )
    op.create_table(
        "tool_calls",
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("timeline", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments_json", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("values_json", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("changes_json", sa.Text(), nullable=False),
        sa.Column("touched_json", sa.Text(), nullable=False),
        sa.Column("reach_json", sa.Text(), nullable=False),
        sa.Column("side_effects_json", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("finished_at", sa.Text(), nullable=False),
        sa.Column("undone", sa.Boolean(), nullable=False),
        _leads_to("tool_calls", "decision_id", "decisions.decision_id"),
        _leads_to("tool_calls", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("call_id", name=op.f("pk_tool_calls")),
    )
    op.create_index(
        op.f("ix_tool_calls_plan_id_seq"), "tool_calls", ["plan_id", "seq"], unique=False
    )
    _create_effects()
    op.create_table(
        "checkpoint_resource_states",
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("snapshot", sa.Text(), nullable=False),
        sa.Column("state_hash", sa.Text(), nullable=False),
        sa.Column("boundary", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["checkpoint_groups.group_id"],
            name=op.f("fk_checkpoint_resource_states_group_id"),
            ondelete="CASCADE",
        ),
        _leads_to("checkpoint_resource_states", "resource_id", "plan_resources.resource_id"),
        sa.PrimaryKeyConstraint(
            "group_id", "resource_id", name=op.f("pk_checkpoint_resource_states")
        ),
    )
    op.create_table(
        "checkpoints",
        sa.Column("checkpoint_id", sa.Text(), nullable=False),
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=True),
        sa.Column("resource_id", sa.Text(), nullable=True),
        sa.Column("checkpoint_type", sa.Text(), nullable=False),
        sa.Column("sandbox_ref", sa.Text(), nullable=False),
        sa.Column("filesystem_path", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("state_hash", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("metadata_json", sa.Text(), nullable=False),
        _leads_to("checkpoints", "decision_id", "decisions.decision_id"),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["checkpoint_groups.group_id"],
            name=op.f("fk_checkpoints_group_id"),
            ondelete="CASCADE",
        ),
        _leads_to("checkpoints", "plan_id", "plans.plan_id"),
        _leads_to("checkpoints", "resource_id", "plan_resources.resource_id"),
        sa.PrimaryKeyConstraint("checkpoint_id", name=op.f("pk_checkpoints")),
    )
    op.create_index(op.f("ix_checkpoints_group_id"), "checkpoints", ["group_id"], unique=False)
    op.create_table(
        "subplans",
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=False),
        sa.Column("root_id", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position_in_step", sa.Integer(), nullable=False),
        sa.Column("timeline", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("invalidated", sa.Boolean(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("conflicts_json", sa.Text(), nullable=False),
        sa.Column("merges_json", sa.Text(), nullable=False),
        sa.Column("losses_json", sa.Text(), nullable=False),
        _leads_to("subplans", "plan_id", "plans.plan_id"),
        _leads_to("subplans", "parent_id", "plans.plan_id"),
        _leads_to("subplans", "root_id", "plans.plan_id"),
        _leads_to("subplans", "decision_id", "decisions.decision_id"),
        sa.PrimaryKeyConstraint("plan_id", name=op.f("pk_subplans")),
    )
    op.create_index(op.f("ix_subplans_parent_id"), "subplans", ["parent_id"], unique=False)
    op.create_index(op.f("ix_subplans_root_id"), "subplans", ["root_id"], unique=False)


def _create_effects() -> None:
    op.create_table(
        "effects",
        sa.Column("effect_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("decision_id", sa.Text(), nullable=False),
        sa.Column("timeline", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("arguments_json", sa.Text(), nullable=False),
        sa.Column("arguments_hash", sa.Text(), nullable=False),
        sa.Column("effects_json", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("values_json", sa.Text(), nullable=False),
        sa.Column("compensate", sa.Text(), nullable=True),
        sa.Column("stands_for", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("finished_at", sa.Text(), nullable=True),
        _leads_to("effects", "decision_id", "decisions.decision_id"),
        _leads_to("effects", "plan_id", "plans.plan_id"),
        _leads_to("effects", "stands_for", "effects.effect_id"),
        sa.PrimaryKeyConstraint("effect_id", name=op.f("pk_effects")),
    )
    for column in ("seq", "step_index"):
        name = op.f(f"ix_effects_plan_id_{column}")
        op.create_index(name, "effects", ["plan_id", column], unique=False)


def _create_plans() -> None:
    op.create_table(
        "plans",
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        *(_text(name) for name in ("action_name", "phase", "state")),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("last_completed_step", sa.Integer(), nullable=False),
        *(_text(n, null=True) for n in ("last_checkpoint_id", "rollback_target", "safety_group")),
        sa.Column("rollback_only_json", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("timeline", "seq")),
        _text("actor_state_json"),
        _text("error_json", null=True),
        *(_text(name) for name in ("applied_json", "created_at")),
        *(_text(name, null=True) for name in ("started_at", "finished_at")),
        sa.Column("lease_epoch", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("plan_id", name=op.f("pk_plans")),
        sa.UniqueConstraint("ordinal", name=op.f("uq_plans_ordinal")),
    )
    op.create_table(
        "plan_actions",
        *(_text(name) for name in ("plan_id", "action_json")),
        _leads_to("plan_actions", "plan_id", "plans.plan_id"),
        sa.PrimaryKeyConstraint("plan_id", name=op.f("pk_plan_actions")),
    )
    op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("inode", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_installation")),
    )


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null)


def _leads_to(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=op.f(f"fk_{table}_{column}"))
