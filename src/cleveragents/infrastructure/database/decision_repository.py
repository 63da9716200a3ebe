"""Decisions, who used whose output, tool calls, timelines and corrections as rows."""

from collections.abc import Collection, Sequence

from cleveragents.domain.correction import Correction, Supersession, Unchecked
from cleveragents.domain.decision import Decision, Dependency, Fork, ToolCall
from cleveragents.domain.errors import (
    CorrectionNotFoundError,
    DatabaseUnusableError,
    DecisionNotFoundError,
)
from cleveragents.domain.ids import CorrectionId, DecisionId, PlanId
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import Table, set_flag

_SELECT_DECISIONS = """
SELECT d.*, s.step_json, s.actor_state_json FROM decisions d
LEFT JOIN decided_steps s ON s.decision_id = d.decision_id"""
_OF_DECIDED = {"step_json": "decided.step", "actor_state_json": "decided.state"}
_DECISIONS = Table("decisions", "decision_id", Decision, _OF_DECIDED)
_DECIDED_STEPS = Table("decided_steps", "decision_id", Decision, _OF_DECIDED)
_DEPENDENCIES = Table("decision_dependencies", "decision_id", Dependency)
_TOOL_CALLS = Table("tool_calls", "call_id", ToolCall)
_OF_START = {"parent_timeline": "start.timeline", "parent_seq": "start.seq"}
_TIMELINES = Table("timelines", "timeline", Fork, _OF_START)
_CORRECTIONS = Table("corrections", "correction_id", Correction)
_SUPERSESSIONS = Table("supersessions", "decision_id", Supersession)
_UNCHECKED = Table("unchecked_decisions", "decision_id", Unchecked)
_IN_ORDER = "WHERE plan_id = ? ORDER BY seq, decision_id"


class SqlDecisions(FencedRows):
    """Also who used whose output."""

    def add(self, decision: Decision) -> None:
        writing = self._fence.writing(decision.plan_id)
        _DECISIONS.insert(writing, decision)
        if decision.decided is not None:
            _DECIDED_STEPS.insert(writing, decision)

    def get(self, decision_id: DecisionId) -> Decision:
        found = self._where("d.decision_id = ?", decision_id)
        if not found:
            raise DecisionNotFoundError(decision_id)
        return found[0]

    def ending_with(self, ending: str) -> Sequence[DecisionId]:
        rows = self._connection.execute(
            "SELECT decision_id FROM decisions WHERE substr(decision_id, ?) = ?"
            " ORDER BY decision_id",
            (-len(ending), ending),
        )
        return [DecisionId(row[0]) for row in rows]

    def starting_with(self, prefix: str) -> Sequence[DecisionId]:
        rows = self._connection.execute(
            "SELECT decision_id FROM decisions WHERE decision_id >= ? AND decision_id < ?"
            " ORDER BY decision_id",
            (prefix, prefix + "~"),
        )
        return [DecisionId(row[0]) for row in rows]

    def of_plan(self, plan_id: PlanId) -> Sequence[Decision]:
        return self._where("d.plan_id = ? ORDER BY d.seq", plan_id)

    def _where(self, condition: str, key: str) -> Sequence[Decision]:
        rows = self._connection.execute(f"{_SELECT_DECISIONS} WHERE {condition}", (key,))
        return [_DECISIONS.read(row) for row in rows]

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[DecisionId]) -> None:
        writing, wanted = self._fence.writing(plan_id), set(superseded)
        set_flag(writing, "decisions", "decision_id", "superseded", plan_id, wanted)

    def depend(self, plan_id: PlanId, dependencies: Collection[Dependency]) -> None:
        self._fence.writing(plan_id).executemany(
            "INSERT OR IGNORE INTO decision_dependencies (plan_id, decision_id, depends_on, why)"
            " VALUES (?, ?, ?, ?)",
            [(plan_id, item.decision_id, item.depends_on, item.why) for item in dependencies],
        )

    def dependencies(self, plan_id: PlanId) -> Sequence[Dependency]:
        return self._dependencies("plan_id", plan_id)

    def dependents(self, decision_id: DecisionId) -> Sequence[Dependency]:
        return self._dependencies("depends_on", decision_id)

    def _dependencies(self, column: str, key: str) -> Sequence[Dependency]:
        rest = f"WHERE {column} = ? ORDER BY decision_id, depends_on"
        return _DEPENDENCIES.select(self._connection, rest, key)


class SqlToolCalls(FencedRows):
    def add(self, call: ToolCall) -> None:
        _TOOL_CALLS.insert(self._fence.writing(call.plan_id), call)

    def of_plan(self, plan_id: PlanId) -> Sequence[ToolCall]:
        return _TOOL_CALLS.select(self._connection, "WHERE plan_id = ? ORDER BY seq", plan_id)

    def of_decision(self, plan_id: PlanId, decision_id: DecisionId) -> Sequence[ToolCall]:
        rest = "WHERE plan_id = ? AND decision_id = ? ORDER BY seq"
        return _TOOL_CALLS.select(self._connection, rest, plan_id, decision_id)

    def mark_undone(self, plan_id: PlanId, undone: Collection[str]) -> None:
        writing, wanted = self._fence.writing(plan_id), set(undone)
        set_flag(writing, "tool_calls", "call_id", "undone", plan_id, wanted)


class SqlTimelines(FencedRows):
    def add(self, plan_id: PlanId, fork: Fork) -> None:
        _TIMELINES.insert(self._fence.writing(plan_id), fork, plan_id=plan_id)

    def of_plan(self, plan_id: PlanId) -> Sequence[Fork]:
        return _TIMELINES.select(self._connection, "WHERE plan_id = ? ORDER BY timeline", plan_id)


class SqlCorrections(FencedRows):
    def add(self, correction: Correction) -> None:
        _CORRECTIONS.insert(self._fence.writing(correction.plan_id), correction)

    def save(self, correction: Correction) -> None:
        if _CORRECTIONS.update(self._fence.writing(correction.plan_id), correction) != 1:
            raise DatabaseUnusableError("", f"correction {correction.correction_id} is missing")

    def get(self, correction_id: CorrectionId) -> Correction:
        found = _CORRECTIONS.select(self._connection, "WHERE correction_id = ?", correction_id)
        if not found:
            raise CorrectionNotFoundError(correction_id)
        return found[0]

    def with_part(self, part: str) -> Sequence[Correction]:
        rest = "WHERE substr(correction_id, 1, ?) = ? OR substr(correction_id, ?) = ?"
        return _CORRECTIONS.select(self._connection, rest, len(part), part, -len(part), part)

    def of_plan(self, plan_id: PlanId) -> Sequence[Correction]:
        return _CORRECTIONS.select(self._connection, "WHERE plan_id = ? ORDER BY rowid", plan_id)

    def supersede(self, plan_id: PlanId, items: Collection[Supersession]) -> None:
        writing = self._fence.writing(plan_id)
        for item in items:
            _SUPERSESSIONS.insert(writing, item, plan_id=plan_id)

    def supersessions(self, plan_id: PlanId) -> Sequence[Supersession]:
        return _SUPERSESSIONS.select(self._connection, _IN_ORDER, plan_id)

    def let_stand(self, plan_id: PlanId, items: Collection[Unchecked]) -> None:
        writing = self._fence.writing(plan_id)
        for item in items:
            _UNCHECKED.insert(writing, item, plan_id=plan_id)

    def unchecked(self, plan_id: PlanId) -> Sequence[Unchecked]:
        return _UNCHECKED.select(self._connection, _IN_ORDER, plan_id)
