"""Decisions, who used whose output, tool calls and timelines as rows."""

from collections.abc import Collection, Mapping, Sequence

from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.decision import (
    Decided,
    Decision,
    DecisionType,
    Dependency,
    Fork,
    Position,
    ToolCall,
    ToolCallStatus,
    ToolResult,
)
from cleveragents.domain.errors import DecisionNotFoundError
from cleveragents.domain.footprint import Footprint, Reach, Touched
from cleveragents.domain.ids import DecisionId, PlanId, ToolCallId
from cleveragents.infrastructure.database.action_codec import step_from_json, step_to_json
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import (
    Row,
    from_json,
    insert,
    row_of,
    set_flag,
    sure_time,
    to_json,
    to_text,
)

_DECISIONS = """
SELECT d.*, s.step_json, s.actor_state_json FROM decisions d
LEFT JOIN decided_steps s ON s.decision_id = d.decision_id"""


class SqlDecisions(FencedRows):
    """Also who used whose output."""

    def add(self, decision: Decision) -> None:
        insert(
            self._fence.writing(decision.plan_id),
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
        if decision.decided is not None:
            self._add_decided(decision, decision.decided)

    def _add_decided(self, decision: Decision, decided: Decided) -> None:
        insert(
            self._fence.writing(decision.plan_id),
            "decided_steps",
            {
                "decision_id": decision.decision_id,
                "plan_id": decision.plan_id,
                "step_json": step_to_json(decided.step),
                "actor_state_json": to_json(decided.state),
            },
        )

    def get(self, decision_id: DecisionId) -> Decision:
        row = self._connection.execute(
            f"{_DECISIONS} WHERE d.decision_id = ?", (decision_id,)
        ).fetchone()
        if row is None:
            raise DecisionNotFoundError(decision_id)
        return _decision(row)

    def starting_with(self, prefix: str) -> Sequence[DecisionId]:
        rows = self._connection.execute(
            "SELECT decision_id FROM decisions WHERE decision_id >= ? AND decision_id < ?"
            " ORDER BY decision_id",
            (prefix, prefix + "~"),
        )
        return [DecisionId(row[0]) for row in rows]

    def of_plan(self, plan_id: PlanId) -> Sequence[Decision]:
        rows = self._connection.execute(
            f"{_DECISIONS} WHERE d.plan_id = ? ORDER BY d.seq", (plan_id,)
        )
        return [_decision(row) for row in rows]

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
        rows = self._connection.execute(
            f"SELECT decision_id, depends_on, why FROM decision_dependencies WHERE {column} = ?"
            " ORDER BY decision_id, depends_on",
            (key,),
        )
        return [
            Dependency(decision_id=DecisionId(row[0]), depends_on=DecisionId(row[1]), why=row[2])
            for row in rows
        ]


class SqlToolCalls(FencedRows):
    def add(self, call: ToolCall) -> None:
        insert(
            self._fence.writing(call.plan_id),
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
                "touched_json": to_json(_touched_values(call.touched)),
                "reach_json": to_json(_reach_values(call.reach)),
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

    def of_decision(self, plan_id: PlanId, decision_id: DecisionId) -> Sequence[ToolCall]:
        rows = self._connection.execute(
            "SELECT * FROM tool_calls WHERE plan_id = ? AND decision_id = ? ORDER BY seq",
            (plan_id, decision_id),
        )
        return [_tool_call(row) for row in rows]

    def mark_undone(self, plan_id: PlanId, undone: Collection[str]) -> None:
        writing, wanted = self._fence.writing(plan_id), set(undone)
        set_flag(writing, "tool_calls", "call_id", "undone", plan_id, wanted)


class SqlTimelines(FencedRows):
    def add(self, plan_id: PlanId, fork: Fork) -> None:
        insert(
            self._fence.writing(plan_id),
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


@row_of("decisions", "decision_id")
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
        decided=_decided(row),
        created_at=sure_time(row["created_at"]),
    )


def _decided(row: Row) -> Decided | None:
    if row["step_json"] is None:
        return None
    return Decided(step=step_from_json(row["step_json"]), state=from_json(row["actor_state_json"]))


@row_of("tool_calls", "call_id")
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
        touched=_touched(row["touched_json"]),
        reach=_reach(row["reach_json"]),
        side_effects=tuple(from_json(row["side_effects_json"])),
        started_at=sure_time(row["started_at"]),
        finished_at=sure_time(row["finished_at"]),
        undone=bool(row["undone"]),
    )


def _touched_values(touched: Touched) -> dict[str, object]:
    return {
        name: [sorted(found.paths), sorted(found.folders), found.whole]
        for name, found in touched.items()
    }


def _touched(text: str) -> Touched:
    return {
        name: Footprint(paths=frozenset(paths), folders=frozenset(folders), whole=whole)
        for name, (paths, folders, whole) in from_json(text).items()
    }


def _reach_values(reach: Reach) -> list[object]:
    return [reach.reads, reach.targets, reach.reads_hidden, reach.writes_hidden]


def _reach(text: str) -> Reach:
    reads, targets, reads_hidden, writes_hidden = from_json(text)
    return Reach(
        reads=None if reads is None else _paths(reads),
        targets=_paths(targets),
        reads_hidden=reads_hidden,
        writes_hidden=writes_hidden,
    )


def _paths(found: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(paths) for name, paths in found.items()}
