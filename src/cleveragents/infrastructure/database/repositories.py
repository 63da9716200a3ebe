"""Owns plans, resources, decisions, tool calls and timelines as rows."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace

from cleveragents.domain.action import ResourceType
from cleveragents.domain.actioncodec import action_from_json, action_to_json
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.decision import (
    Decision,
    DecisionType,
    Fork,
    Position,
    ToolCall,
    ToolCallStatus,
    ToolResult,
)
from cleveragents.domain.errors import (
    DatabaseUnusableError,
    DecisionNotFoundError,
    PlanNotFoundError,
)
from cleveragents.domain.ids import (
    CheckpointId,
    DecisionId,
    GroupId,
    PlanId,
    ResourceId,
    ToolCallId,
)
from cleveragents.domain.plan import Phase, Plan, PlanFailure, State
from cleveragents.domain.sandbox import PlanResource, SandboxStatus
from cleveragents.infrastructure.database.rows import (
    Row,
    from_json,
    insert,
    set_flag,
    sure_time,
    to_json,
    to_text,
    to_time,
    update,
)
from cleveragents.infrastructure.database.subplan_repository import child_links, child_of


class SqlPlans:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, plan: Plan) -> None:
        insert(self._connection, "plans", _plan_values(plan))

    def save(self, plan: Plan) -> None:
        # The action never changes after `plan use`, and may be large.
        values = _plan_values(plan)
        del values["action_json"]
        if update(self._connection, "plans", "plan_id", values) != 1:
            raise PlanNotFoundError(plan.plan_id)

    def get(self, plan_id: PlanId) -> Plan:
        row = self._connection.execute(
            "SELECT * FROM plans WHERE plan_id = ?", (plan_id,)
        ).fetchone()
        if row is None:
            raise PlanNotFoundError(plan_id)
        return replace(_plan(row), child_of=child_of(self._connection, plan_id))

    def list(self) -> Sequence[Plan]:
        rows = self._connection.execute("SELECT * FROM plans ORDER BY plan_id DESC")
        plans = [_plan(row) for row in rows]
        children = child_links(self._connection)
        return [replace(plan, child_of=children.get(plan.plan_id)) for plan in plans]


class SqlResources:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, resource: PlanResource) -> None:
        insert(self._connection, "plan_resources", _resource_values(resource))

    def save(self, resource: PlanResource) -> None:
        values = _resource_values(resource)
        if update(self._connection, "plan_resources", "resource_id", values) != 1:
            raise DatabaseUnusableError("", f"resource {resource.resource_id} is missing")

    def of_plan(self, plan_id: PlanId) -> Sequence[PlanResource]:
        rows = self._connection.execute(
            "SELECT * FROM plan_resources WHERE plan_id = ? ORDER BY resource_id", (plan_id,)
        )
        return [_resource(row) for row in rows]


class SqlDecisions:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, decision: Decision) -> None:
        insert(
            self._connection,
            "decisions",
            {
                "decision_id": decision.decision_id,
                "plan_id": decision.plan_id,
                "parent_id": decision.parent_id,
                "timeline": decision.position.timeline,
                "seq": decision.position.seq,
                "type": decision.type,
                "question": decision.question,
                "chosen": decision.chosen,
                "alternatives_json": to_json(decision.alternatives),
                "rationale": decision.rationale,
                "confidence": decision.confidence,
                "context_json": to_json(decision.context),
                "phase": decision.phase,
                "step_index": decision.step_index,
                "attempt": decision.attempt,
                "superseded": decision.superseded,
                "created_at": to_text(decision.created_at),
            },
        )

    def get(self, decision_id: DecisionId) -> Decision:
        row = self._connection.execute(
            "SELECT * FROM decisions WHERE decision_id = ?", (decision_id,)
        ).fetchone()
        if row is None:
            raise DecisionNotFoundError(decision_id)
        return _decision(row)

    def of_plan(self, plan_id: PlanId) -> Sequence[Decision]:
        rows = self._connection.execute(
            "SELECT * FROM decisions WHERE plan_id = ? ORDER BY seq", (plan_id,)
        )
        return [_decision(row) for row in rows]

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[DecisionId]) -> None:
        set_flag(
            self._connection, "decisions", "decision_id", "superseded", plan_id, set(superseded)
        )


class SqlToolCalls:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, call: ToolCall) -> None:
        insert(
            self._connection,
            "tool_calls",
            {
                "call_id": call.call_id,
                "plan_id": call.plan_id,
                "decision_id": call.decision_id,
                "timeline": call.position.timeline,
                "seq": call.position.seq,
                "step_index": call.step_index,
                "tool": call.tool,
                "arguments_json": to_json(call.arguments),
                "status": call.status,
                "output": call.result.output,
                "values_json": to_json(call.result.values),
                "error": call.error,
                "changes_json": to_json([(change.path, change.kind) for change in call.changes]),
                "side_effects_json": to_json(call.side_effects),
                "started_at": to_text(call.started_at),
                "finished_at": to_text(call.finished_at),
                "undone": call.undone,
            },
        )

    def of_plan(self, plan_id: PlanId) -> Sequence[ToolCall]:
        rows = self._connection.execute(
            "SELECT * FROM tool_calls WHERE plan_id = ? ORDER BY seq", (plan_id,)
        )
        return [_tool_call(row) for row in rows]

    def mark_undone(self, plan_id: PlanId, undone: Collection[str]) -> None:
        set_flag(self._connection, "tool_calls", "call_id", "undone", plan_id, set(undone))


class SqlTimelines:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, plan_id: PlanId, fork: Fork) -> None:
        insert(
            self._connection,
            "timelines",
            {
                "plan_id": plan_id,
                "timeline": fork.timeline,
                "parent_timeline": fork.start.timeline,
                "parent_seq": fork.start.seq,
            },
        )

    def of_plan(self, plan_id: PlanId) -> Sequence[Fork]:
        rows = self._connection.execute(
            "SELECT timeline, parent_timeline, parent_seq FROM timelines WHERE plan_id = ?"
            " ORDER BY timeline",
            (plan_id,),
        )
        return [Fork(timeline=row[0], start=Position(timeline=row[1], seq=row[2])) for row in rows]


def _plan_values(plan: Plan) -> dict[str, object]:
    return {
        "plan_id": plan.plan_id,
        "action_name": plan.action.name,
        "action_json": action_to_json(plan.action),
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
        "details_json": to_json(resource.details),
    }


def _resource(row: Row) -> PlanResource:
    return PlanResource(
        resource_id=ResourceId(row["resource_id"]),
        plan_id=PlanId(row["plan_id"]),
        name=row["name"],
        type=ResourceType(row["type"]),
        location=row["location"],
        base=row["base"],
        sandbox_path=row["sandbox_path"],
        status=SandboxStatus(row["status"]),
        include=tuple(from_json(row["include_json"])),
        exclude=tuple(from_json(row["exclude_json"])),
        checkpointable=bool(row["checkpointable"]),
        base_snapshot=row["base_snapshot"],
        boundary=row["boundary"],
        details=from_json(row["details_json"]),
    )


def _decision(row: Row) -> Decision:
    parent = row["parent_id"]
    return Decision(
        decision_id=DecisionId(row["decision_id"]),
        plan_id=PlanId(row["plan_id"]),
        parent_id=None if parent is None else DecisionId(parent),
        position=Position(timeline=row["timeline"], seq=row["seq"]),
        type=DecisionType(row["type"]),
        question=row["question"],
        chosen=row["chosen"],
        alternatives=tuple(from_json(row["alternatives_json"])),
        rationale=row["rationale"],
        confidence=row["confidence"],
        context=from_json(row["context_json"]),
        phase=row["phase"],
        step_index=row["step_index"],
        attempt=row["attempt"],
        superseded=bool(row["superseded"]),
        created_at=sure_time(row["created_at"]),
    )


def _tool_call(row: Row) -> ToolCall:
    return ToolCall(
        call_id=ToolCallId(row["call_id"]),
        plan_id=PlanId(row["plan_id"]),
        decision_id=DecisionId(row["decision_id"]),
        position=Position(timeline=row["timeline"], seq=row["seq"]),
        step_index=row["step_index"],
        tool=row["tool"],
        arguments=from_json(row["arguments_json"]),
        status=ToolCallStatus(row["status"]),
        result=ToolResult(output=row["output"], values=from_json(row["values_json"])),
        error=row["error"],
        changes=tuple(
            FileChange(path=path, kind=ChangeKind(kind))
            for path, kind in from_json(row["changes_json"])
        ),
        side_effects=tuple(from_json(row["side_effects_json"])),
        started_at=sure_time(row["started_at"]),
        finished_at=sure_time(row["finished_at"]),
        undone=bool(row["undone"]),
    )
