"""What plans did outside of their sandboxes, as rows: effects, and applies to take back."""

from collections.abc import Sequence

from cleveragents.domain.applied import AppliedChange
from cleveragents.domain.effects import Effect
from cleveragents.domain.errors import DatabaseUnusableError
from cleveragents.domain.ids import EffectId, PlanId
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import Table

_EFFECTS = Table("effects", "effect_id", Effect)
_APPLIED = Table("applied_changes", "plan_id", AppliedChange)


class SqlEffects(FencedRows):
    def put(self, effect: Effect) -> None:
        writing = self._fence.writing(effect.plan_id)
        if _EFFECTS.update(writing, effect) == 0:
            _EFFECTS.insert(writing, effect)

    def remove(self, effect: Effect) -> None:
        writing = self._fence.writing(effect.plan_id)
        writing.execute("DELETE FROM effects WHERE effect_id = ?", (effect.effect_id,))

    def get(self, effect_id: EffectId) -> Effect:
        found = _EFFECTS.select(self._connection, "WHERE effect_id = ?", effect_id)
        if not found:
            raise DatabaseUnusableError("", f"effect {effect_id} is missing")
        return found[0]

    def of_plan(self, plan_id: PlanId) -> Sequence[Effect]:
        return _EFFECTS.select(self._connection, "WHERE plan_id = ? ORDER BY seq", plan_id)


class SqlAppliedChanges(FencedRows):
    def put(self, change: AppliedChange) -> None:
        writing = self._fence.writing(change.plan_id)
        if _APPLIED.update(writing, change) == 0:
            _APPLIED.insert(writing, change)

    def find(self, plan_id: PlanId) -> AppliedChange | None:
        found = _APPLIED.select(self._connection, "WHERE plan_id = ?", plan_id)
        return found[0] if found else None

    def kept(self) -> Sequence[AppliedChange]:
        return _APPLIED.select(self._connection, "WHERE ways_json <> '{}' ORDER BY plan_id")
