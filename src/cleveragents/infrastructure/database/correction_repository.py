"""Corrections and what they superseded as rows."""

from collections.abc import Collection, Sequence

from cleveragents.domain.correction import (
    Correction,
    CorrectionMode,
    CorrectionStatus,
    Supersession,
    Unchecked,
)
from cleveragents.domain.decision import Position
from cleveragents.domain.errors import CorrectionNotFoundError, DatabaseUnusableError
from cleveragents.domain.ids import CorrectionId, DecisionId, GroupId, PlanId
from cleveragents.infrastructure.database.action_codec import step_from_json, step_to_json
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import (
    Row,
    from_json,
    insert,
    row_of,
    sure_time,
    to_json,
    to_text,
    update,
)


class SqlCorrections(FencedRows):
    def add(self, correction: Correction) -> None:
        insert(self._fence.writing(correction.plan_id), "corrections", _values(correction))

    def save(self, correction: Correction) -> None:
        writing = self._fence.writing(correction.plan_id)
        if update(writing, "corrections", "correction_id", _values(correction)) != 1:
            raise DatabaseUnusableError("", f"correction {correction.correction_id} is missing")

    def get(self, correction_id: CorrectionId) -> Correction:
        row = self._connection.execute(
            "SELECT * FROM corrections WHERE correction_id = ?", (correction_id,)
        ).fetchone()
        if row is None:
            raise CorrectionNotFoundError(correction_id)
        return _correction(row)

    def of_plan(self, plan_id: PlanId) -> Sequence[Correction]:
        rows = self._connection.execute(
            "SELECT * FROM corrections WHERE plan_id = ? ORDER BY rowid", (plan_id,)
        )
        return [_correction(row) for row in rows]

    def supersede(self, plan_id: PlanId, items: Collection[Supersession]) -> None:
        writing = self._fence.writing(plan_id)
        for item in items:
            insert(
                writing,
                "supersessions",
                {
                    "correction_id": item.correction_id,
                    "decision_id": item.decision_id,
                    "plan_id": plan_id,
                    "timeline": item.position.timeline,
                    "seq": item.position.seq,
                },
            )

    def supersessions(self, plan_id: PlanId) -> Sequence[Supersession]:
        rows = self._connection.execute(
            "SELECT * FROM supersessions WHERE plan_id = ? ORDER BY seq, decision_id", (plan_id,)
        )
        return [
            Supersession(
                decision_id=DecisionId(row["decision_id"]),
                correction_id=CorrectionId(row["correction_id"]),
                position=Position(timeline=row["timeline"], seq=row["seq"]),
            )
            for row in rows
        ]

    def let_stand(self, plan_id: PlanId, items: Collection[Unchecked]) -> None:
        writing = self._fence.writing(plan_id)
        for item in items:
            insert(
                writing,
                "unchecked_decisions",
                {
                    "decision_id": item.decision_id,
                    "timeline": item.position.timeline,
                    "seq": item.position.seq,
                    "plan_id": plan_id,
                    "why": item.why,
                },
            )

    def unchecked(self, plan_id: PlanId) -> Sequence[Unchecked]:
        rows = self._connection.execute(
            "SELECT * FROM unchecked_decisions WHERE plan_id = ? ORDER BY seq, decision_id",
            (plan_id,),
        )
        return [
            Unchecked(
                decision_id=DecisionId(row["decision_id"]),
                position=Position(timeline=row["timeline"], seq=row["seq"]),
                why=row["why"],
            )
            for row in rows
        ]


def _values(correction: Correction) -> dict[str, object]:
    replacement = correction.replacement
    return {
        "correction_id": correction.correction_id,
        "plan_id": correction.plan_id,
        "decision_id": correction.decision_id,
        "mode": correction.mode,
        "guidance": correction.guidance,
        "status": correction.status,
        "target_group": correction.target_group,
        "safety_group": correction.safety_group,
        "intervention_id": correction.intervention_id,
        "affected_json": to_json(correction.affected),
        "kept_json": to_json(correction.kept),
        "steps_json": to_json(correction.steps),
        "restored_json": to_json(correction.restored),
        "step_index": correction.step_index,
        "replacement_json": None if replacement is None else step_to_json(replacement),
        "created_at": to_text(correction.created_at),
    }


@row_of("corrections", "correction_id")
def _correction(row: Row) -> Correction:
    target, safety = row["target_group"], row["safety_group"]
    intervention, replacement = row["intervention_id"], row["replacement_json"]
    restored = from_json(row["restored_json"])
    return Correction(
        correction_id=CorrectionId(row["correction_id"]),
        plan_id=PlanId(row["plan_id"]),
        decision_id=DecisionId(row["decision_id"]),
        mode=CorrectionMode(row["mode"]),
        guidance=row["guidance"],
        status=CorrectionStatus(row["status"]),
        target_group=None if target is None else GroupId(target),
        safety_group=None if safety is None else GroupId(safety),
        intervention_id=None if intervention is None else DecisionId(intervention),
        affected=tuple(DecisionId(item) for item in from_json(row["affected_json"])),
        kept=tuple(DecisionId(item) for item in from_json(row["kept_json"])),
        steps=tuple(from_json(row["steps_json"])),
        restored={k: None if v is None else tuple(v) for k, v in restored.items()},
        step_index=row["step_index"],
        replacement=None if replacement is None else step_from_json(replacement),
        created_at=sure_time(row["created_at"]),
    )
