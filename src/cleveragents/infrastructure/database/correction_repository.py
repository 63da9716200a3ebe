"""Corrections and what they superseded as rows."""

from collections.abc import Collection, Sequence

from cleveragents.domain.correction import Correction, Supersession, Unchecked
from cleveragents.domain.errors import CorrectionNotFoundError, DatabaseUnusableError
from cleveragents.domain.ids import CorrectionId, PlanId
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import Table

_CORRECTIONS = Table("corrections", "correction_id", Correction)
_SUPERSESSIONS = Table("supersessions", "decision_id", Supersession)
_UNCHECKED = Table("unchecked_decisions", "decision_id", Unchecked)
_IN_ORDER = "WHERE plan_id = ? ORDER BY seq, decision_id"


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
