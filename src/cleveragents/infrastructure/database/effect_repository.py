"""The ledger of outside effects as rows."""

from collections.abc import Sequence

from cleveragents.domain.decision import Position, ToolResult
from cleveragents.domain.effects import Effect, EffectState
from cleveragents.domain.errors import DatabaseUnusableError
from cleveragents.domain.ids import DecisionId, EffectId, PlanId
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


class SqlEffects(FencedRows):
    def put(self, effect: Effect) -> None:
        writing, values = self._fence.writing(effect.plan_id), _values(effect)
        if update(writing, "effects", "effect_id", values) == 0:
            insert(writing, "effects", values)

    def remove(self, effect: Effect) -> None:
        writing = self._fence.writing(effect.plan_id)
        writing.execute("DELETE FROM effects WHERE effect_id = ?", (effect.effect_id,))

    def get(self, effect_id: EffectId) -> Effect:
        row = self._connection.execute(
            "SELECT * FROM effects WHERE effect_id = ?", (effect_id,)
        ).fetchone()
        if row is None:
            raise DatabaseUnusableError("", f"effect {effect_id} is missing")
        return _effect(row)

    def of_plan(self, plan_id: PlanId) -> Sequence[Effect]:
        rows = self._connection.execute(
            "SELECT * FROM effects WHERE plan_id = ? ORDER BY seq", (plan_id,)
        )
        return [_effect(row) for row in rows]


def _values(effect: Effect) -> dict[str, object]:
    return {
        "effect_id": effect.effect_id,
        "plan_id": effect.plan_id,
        "decision_id": effect.decision_id,
        "timeline": effect.position.timeline,
        "seq": effect.position.seq,
        "step_index": effect.step_index,
        "tool": effect.tool,
        "arguments_json": to_json(effect.arguments),
        "arguments_hash": effect.arguments_hash,
        "effects_json": to_json(effect.effects),
        "state": effect.state,
        "output": effect.result.output,
        "values_json": to_json(effect.result.values),
        "compensate": effect.compensate,
        "stands_for": effect.stands_for,
        "error": effect.error,
        "started_at": to_text(effect.started_at),
        "finished_at": to_text(effect.finished_at),
    }


@row_of("effects", "effect_id")
def _effect(row: Row) -> Effect:
    stands_for = row["stands_for"]
    return Effect(
        effect_id=EffectId(row["effect_id"]),
        plan_id=PlanId(row["plan_id"]),
        decision_id=DecisionId(row["decision_id"]),
        position=Position(timeline=row["timeline"], seq=row["seq"]),
        step_index=row["step_index"],
        tool=row["tool"],
        arguments=from_json(row["arguments_json"]),
        arguments_hash=row["arguments_hash"],
        effects=tuple(from_json(row["effects_json"])),
        state=EffectState(row["state"]),
        result=ToolResult(output=row["output"], values=from_json(row["values_json"])),
        compensate=row["compensate"],
        stands_for=None if stands_for is None else EffectId(stands_for),
        error=row["error"],
        started_at=sure_time(row["started_at"]),
        finished_at=to_time(row["finished_at"]),
    )
