"""Plans and their resources as rows."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import asdict, replace

from cleveragents.domain.actor_protocol import PlacedStep, grown
from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import (
    DatabaseUnusableError,
    PlanNotFoundError,
)
from cleveragents.domain.ids import (
    CheckpointId,
    GroupId,
    PlanId,
    ResourceId,
)
from cleveragents.domain.places import PlacedPlan, folder_of
from cleveragents.domain.plan import Phase, Plan, PlanFailure, State
from cleveragents.domain.resource import PlanResource, Rebuilding, SandboxStatus
from cleveragents.domain.resource_kinds import type_named
from cleveragents.infrastructure.database.action_codec import (
    action_from_json,
    action_to_json,
    step_from_json,
)
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import (
    Row,
    from_json,
    insert,
    row_of,
    sure_time,
    to_json,
    to_text,
    to_time,
    update,
)
from cleveragents.infrastructure.database.subplan_repository import child_links, child_of

# A correction counts as long as its own decision does, and so does a step that was decided.
_PLACED_STEPS = """
SELECT c.plan_id, c.step_index, c.replacement_json AS step_json, 0 AS judges, d.seq
FROM corrections c JOIN decisions d ON d.decision_id = c.intervention_id
WHERE c.replacement_json IS NOT NULL AND d.superseded = 0 {corrected}
UNION ALL
SELECT d.plan_id, d.step_index, s.step_json, d.type = 'validation_response', d.seq
FROM decided_steps s JOIN decisions d ON d.decision_id = s.decision_id
WHERE d.superseded = 0 {decided}
ORDER BY 5
"""
# A child plan's place is that of its parent, which is the one that a person means.
_PLACES = """
SELECT p.plan_id, p.action_name, r.type, r.location FROM plans p
LEFT JOIN plan_resources r ON r.resource_id =
    (SELECT min(first.resource_id) FROM plan_resources first WHERE first.plan_id = p.plan_id)
WHERE NOT EXISTS (SELECT 1 FROM subplans s WHERE s.plan_id = p.plan_id)
ORDER BY p.ordinal DESC
"""
# Apart from the plan's own row, which each step changes: SQLite goes over all of a row for that.
_WITH_ACTION = "SELECT p.*, a.action_json FROM plans p LEFT JOIN plan_actions a USING (plan_id)"
_LAST = "SELECT coalesce(max(ordinal), 0) FROM plans"
_OF_ALL = _PLACED_STEPS.format(corrected="", decided="")
_OF_ONE = _PLACED_STEPS.format(corrected="AND c.plan_id = ?", decided="AND s.plan_id = ?")


class SqlPlans(FencedRows):
    """A plan's action has the steps that its actor decided, and those that corrections put in the
    place of others."""

    def add(self, plan: Plan) -> None:
        # Ids are made from the time, which may go back; only one transaction adds at a time.
        (last,) = self._connection.execute(_LAST).fetchone()
        once = {"ordinal": last + 1, "lease_epoch": 0}
        making = self._fence.making(plan.plan_id)
        insert(making, "plans", {**_plan_values(plan), **once})
        action = {"plan_id": plan.plan_id, "action_json": action_to_json(plan.action)}
        insert(making, "plan_actions", action)

    def save(self, plan: Plan) -> None:
        writing = self._fence.writing(plan.plan_id)
        if update(writing, "plans", "plan_id", _plan_values(plan)) != 1:
            raise PlanNotFoundError(plan.plan_id)

    def refuse_overtaken(self, plan_id: PlanId) -> None:
        self._fence.refuse_overtaken(plan_id)

    def get(self, plan_id: PlanId) -> Plan:
        row = self._connection.execute(f"{_WITH_ACTION} WHERE p.plan_id = ?", (plan_id,)).fetchone()
        if row is None:
            raise PlanNotFoundError(plan_id)
        steps = self._connection.execute(_OF_ONE, (plan_id, plan_id))
        return _grown(replace(_plan(row), child_of=child_of(self._connection, plan_id)), steps)

    def starting_with(self, prefix: str) -> Sequence[PlanId]:
        rows = self._connection.execute(
            "SELECT plan_id FROM plans WHERE plan_id >= ? AND plan_id < ? ORDER BY plan_id",
            (prefix, prefix + "~"),
        )
        return [PlanId(row[0]) for row in rows]

    def list(self) -> Sequence[Plan]:
        rows = self._connection.execute(f"{_WITH_ACTION} ORDER BY p.ordinal DESC").fetchall()
        steps: dict[str, list[Row]] = {}
        for step in self._connection.execute(_OF_ALL):
            steps.setdefault(step["plan_id"], []).append(step)
        plans = [_grown(_plan(row), steps.get(row["plan_id"], [])) for row in rows]
        children = child_links(self._connection)
        return [replace(plan, child_of=children.get(plan.plan_id)) for plan in plans]

    def places(self) -> Sequence[PlacedPlan]:
        return [
            PlacedPlan(
                plan_id=PlanId(row["plan_id"]),
                action=row["action_name"],
                place=row["type"] and folder_of(type_named(row["type"]), row["location"]),
            )
            for row in self._connection.execute(_PLACES)
        ]


class SqlResources(FencedRows):
    def add(self, resource: PlanResource) -> None:
        writing = self._fence.writing(resource.plan_id)
        insert(writing, "plan_resources", _resource_values(resource))

    def save(self, resource: PlanResource) -> None:
        writing, values = self._fence.writing(resource.plan_id), _resource_values(resource)
        if update(writing, "plan_resources", "resource_id", values) != 1:
            raise DatabaseUnusableError("", f"resource {resource.resource_id} is missing")

    def of_plan(self, plan_id: PlanId) -> Sequence[PlanResource]:
        rows = self._connection.execute(
            "SELECT * FROM plan_resources WHERE plan_id = ? ORDER BY resource_id", (plan_id,)
        )
        return [_resource(row) for row in rows]


def _plan_values(plan: Plan) -> dict[str, object]:
    """All but what never changes: the action, which is large, and the plan's place in their order.
    These are written once, by `add`."""
    return {
        "plan_id": plan.plan_id,
        "action_name": plan.action.name,
        "phase": plan.phase,
        "state": plan.state,
        "attempt": plan.attempt,
        "last_completed_step": plan.last_completed_step,
        "last_checkpoint_id": plan.head,
        "rollback_target": plan.rollback_target,
        "safety_group": plan.safety_group,
        "rollback_only_json": to_json(plan.rollback_only),
        "timeline": plan.timeline,
        "seq": plan.seq,
        "actor_state_json": to_json(plan.actor_state),
        "error_json": None if plan.error is None else to_json(asdict(plan.error)),
        "applied_json": to_json(plan.applied),
        "created_at": to_text(plan.created_at),
        "started_at": to_text(plan.started_at),
        "finished_at": to_text(plan.finished_at),
    }


@row_of("plans", "plan_id")
def _plan(row: Row) -> Plan:
    return Plan(
        plan_id=PlanId(row["plan_id"]),
        action=action_from_json(row["action_json"]),
        phase=Phase(row["phase"]),
        state=State(row["state"]),
        attempt=row["attempt"],
        last_completed_step=row["last_completed_step"],
        head=_maybe_checkpoint(row["last_checkpoint_id"]),
        rollback_target=_maybe_group(row["rollback_target"]),
        safety_group=_maybe_group(row["safety_group"]),
        rollback_only=tuple(from_json(row["rollback_only_json"])),
        timeline=row["timeline"],
        seq=row["seq"],
        actor_state=from_json(row["actor_state_json"]),
        error=_failure(row["error_json"]),
        applied=from_json(row["applied_json"]),
        created_at=sure_time(row["created_at"]),
        started_at=to_time(row["started_at"]),
        finished_at=to_time(row["finished_at"]),
    )


def _grown(plan: Plan, steps: Iterable[Row]) -> Plan:
    placed = [
        PlacedStep(
            index=row["step_index"],
            step=step_from_json(row["step_json"]),
            judges=bool(row["judges"]),
        )
        for row in steps
    ]
    return replace(plan, action=grown(plan.action, placed)) if placed else plan


def _maybe_checkpoint(text: str | None) -> CheckpointId | None:
    return None if text is None else CheckpointId(text)


def _maybe_group(text: str | None) -> GroupId | None:
    return None if text is None else GroupId(text)


def _failure(text: str | None) -> PlanFailure | None:
    if text is None:
        return None
    fields = from_json(text)
    checkpoint = _maybe_checkpoint(fields.pop("checkpoint"))
    return PlanFailure(**fields, checkpoint=checkpoint)


def _resource_values(resource: PlanResource) -> dict[str, object]:
    return {
        "resource_id": resource.resource_id,
        "plan_id": resource.plan_id,
        "name": resource.name,
        "type": resource.type,
        "location": resource.location,
        "base": resource.base,
        "sandbox_path": resource.sandbox_path,
        "status": resource.status,
        "include_json": to_json(resource.include),
        "exclude_json": to_json(resource.exclude),
        "checkpointable": resource.checkpointable,
        "base_snapshot": resource.base_snapshot,
        "boundary": resource.boundary,
        "state_json": to_json(to_builtins(state_of(resource), enc_hook=str)),
    }


class StoredResource(Struct, frozen=True, forbid_unknown_fields=True):
    """Of a resource, what no query asks for; each as `PlanResource` has it."""

    kept_with: str | None
    confinement: Confinement
    cut_out: dict[str, str]
    branched_at: str | None
    origin: str | None
    intent: dict[str, Any] | None
    intent_needs: tuple[str, ...]
    uncounted: int
    rebuilding: Rebuilding | None
    details: dict[str, Any]


def state_of(resource: PlanResource) -> StoredResource:
    return StoredResource(*(getattr(resource, name) for name in StoredResource.__struct_fields__))


@row_of("plan_resources", "resource_id")
def _resource(row: Row) -> PlanResource:
    state = convert(from_json(row["state_json"]), StoredResource)
    return PlanResource(
        resource_id=ResourceId(row["resource_id"]),
        plan_id=PlanId(row["plan_id"]),
        name=row["name"],
        type=type_named(row["type"]),
        location=row["location"],
        base=row["base"],
        sandbox_path=row["sandbox_path"],
        status=SandboxStatus(row["status"]),
        include=tuple(from_json(row["include_json"])),
        exclude=tuple(from_json(row["exclude_json"])),
        checkpointable=bool(row["checkpointable"]),
        base_snapshot=row["base_snapshot"],
        boundary=row["boundary"],
        kept_with=PlanId(state.kept_with) if state.kept_with else None,
        confinement=state.confinement,
        cut_out=state.cut_out,
        branched_at=state.branched_at,
        origin=state.origin,
        intent=state.intent,
        intent_needs=state.intent_needs,
        uncounted=state.uncounted,
        rebuilding=state.rebuilding,
        details=state.details,
    )
