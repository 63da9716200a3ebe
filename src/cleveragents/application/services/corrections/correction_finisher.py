"""Carrying a correction out: intent, files, one transaction; and finishing one cut off."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import UnitOfWork, UnitOfWorkFactory
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.checkpoints.recorded_with import CommitExtras
from cleveragents.application.services.corrections.correction_impact import (
    actor_state_for,
    selection_of,
)
from cleveragents.application.services.effects.compensations import Compensations
from cleveragents.application.services.execute.run_state import links_to
from cleveragents.application.services.rollback.rewind import recompute_superseded
from cleveragents.application.services.rollback.rollback_files import (
    ChangedResource,
    RollbackFiles,
)
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointMoment, CheckpointReason
from cleveragents.domain.correction import Correction, CorrectionStatus, Supersession, Unchecked
from cleveragents.domain.decision import Decision, DecisionType
from cleveragents.domain.effects import EffectReport
from cleveragents.domain.errors import PlanError, RollbackPendingError
from cleveragents.domain.plan import Plan


class Corrected(Struct, frozen=True, kw_only=True):
    """It is in force; `safety` is the state before it."""

    plan: Plan
    correction: Correction
    safety: CheckpointGroup
    changed: Sequence[ChangedResource]
    effects: EffectReport


class CorrectionFinisher:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        checkpoints: CheckpointService,
        files: RollbackFiles,
        compensations: Compensations,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._checkpoints = checkpoints
        self._files = files
        self._compensations = compensations

    def begin(self, plan: Plan, correction: Correction) -> tuple[Plan, Correction]:
        """Keep the present and store the intent, in one transaction. Nothing else changes yet."""

        def intent(uow: UnitOfWork, plan: Plan) -> None:
            uow.corrections.add(replace(correction, safety_group=plan.safety_group))

        moment = CheckpointMoment(
            reason=CheckpointReason.BEFORE_ROLLBACK,
            source="correct",
            label=f"before correction of {correction.decision_id}",
            decision_id=correction.decision_id,
            step_index=correction.step_index or 0,
            mid_step=self._checkpoints.stands_mid_step(plan),
            rollback_target=correction.target_group,
        )
        plan, safety = self._checkpoints.record(plan, moment, CommitExtras(also=intent))
        return plan, replace(correction, safety_group=safety.group_id)

    def pending(self, plan: Plan) -> Correction | None:
        if plan.rollback_target is None:
            return None
        with self._unit_of_work.reading() as uow:
            found = uow.corrections.of_plan(plan.plan_id)
        waiting = [item for item in found if item.status is CorrectionStatus.PENDING]
        return waiting[-1] if waiting else None

    def finish(self, plan: Plan, correction: Correction) -> Corrected:
        """May be repeated after a kill at any moment; on an error everything is put back."""
        assert correction.target_group is not None and plan.safety_group is not None
        with self._unit_of_work.reading() as uow:
            target = uow.checkpoints.get(correction.target_group)
            safety = uow.checkpoints.get(plan.safety_group)
            state = actor_state_for(uow, plan, correction, target)
            corrected = uow.decisions.get(correction.decision_id)
            staying = [d for d in uow.decisions.of_plan(plan.plan_id) if _stays(d, correction)]
        effects = self._compensations.undo_of(plan, correction.affected)
        try:
            changed = self._files.restore_only(plan, target, selection_of(correction.restored))
        except PlanError as error:
            self._put_back(plan, correction, safety, error)
            raise
        line = (corrected, staying[-1])
        plan, correction = self._record(plan, correction, line, state)
        return Corrected(
            plan=plan, correction=correction, safety=safety, changed=changed, effects=effects
        )

    def _put_back(
        self, plan: Plan, correction: Correction, safety: CheckpointGroup, cause: PlanError
    ) -> None:
        try:
            self._files.restore(plan.plan_id, safety)
        except PlanError as error:
            # The intent stays stored, so the next command tries to finish what this one could not.
            raise RollbackPendingError(plan.plan_id, cause.message, error.message) from error
        with self._unit_of_work() as uow:
            uow.plans.save(plan.abandon_rollback())
            uow.corrections.save(correction.abandoned())
            uow.commit()

    def _record(
        self,
        plan: Plan,
        correction: Correction,
        line: tuple[Decision, Decision],
        state: Mapping[str, Any],
    ) -> tuple[Plan, Correction]:
        """`line`: the decision that is corrected, and the last one that stays."""
        corrected, latest = line
        first = correction.steps[0] if correction.steps else plan.last_completed_step + 1
        done = correction.done()

        def take_over(uow: UnitOfWork, plan: Plan) -> None:
            uow.corrections.save(done)
            uow.corrections.supersede(
                plan.plan_id,
                [
                    Supersession(
                        decision_id=decision_id,
                        correction_id=done.correction_id,
                        position=plan.here,
                    )
                    for decision_id in done.affected
                ],
            )
            uow.corrections.let_stand(plan.plan_id, _let_stand(done, corrected, plan))
            recompute_superseded(uow, plan)

        plan = plan.corrected(first, state)
        decision = _intervention(plan, done, corrected, first)
        moment = CheckpointMoment(
            reason=CheckpointReason.DECISION,
            source="correct",
            label=f"correction {plan.attempt - 1}: {_short(correction.guidance)}",
            decision_id=decision.decision_id,
            step_index=first,
            undo_group=correction.safety_group,
        )
        link = links_to(plan.action, decision.decision_id, latest)
        additions = CommitExtras(decision=decision, dependencies=link, also=take_over)
        self._checkpoints.record(plan, moment, additions)
        with self._unit_of_work.reading() as uow:
            # Read again, for its action has the step that was replaced.
            return uow.plans.get(plan.plan_id), done


def _let_stand(correction: Correction, corrected: Decision, plan: Plan) -> list[Unchecked]:
    why = f"kept as it was when `{_short(corrected.chosen)}` was corrected"
    return [
        Unchecked(decision_id=decision_id, position=plan.here, why=why)
        for decision_id in correction.kept
    ]


def _stays(decision: Decision, correction: Correction) -> bool:
    return not decision.superseded and decision.decision_id not in correction.affected


def _intervention(plan: Plan, correction: Correction, corrected: Decision, first: int) -> Decision:
    assert correction.intervention_id is not None
    return Decision(
        decision_id=correction.intervention_id,
        plan_id=plan.plan_id,
        parent_id=corrected.parent_id,
        position=plan.here,
        type=DecisionType.USER_INTERVENTION,
        question=f"What shall be done instead of `{corrected.chosen}`?",
        chosen=correction.guidance,
        alternatives=(corrected.chosen,),
        rationale=f"a person corrected decision {corrected.decision_id}",
        context={
            "correction": correction.correction_id,
            "corrected": corrected.decision_id,
            "steps": list(correction.steps),
            "first_step": first,
            "actor_state": dict(plan.actor_state),
        },
        phase=corrected.phase,
        step_index=corrected.step_index,
        attempt=plan.attempt,
        created_at=correction.created_at,
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."
