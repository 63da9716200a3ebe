"""Carrying a correction out: intent, files, one transaction; and finishing one cut off.

In which order: the safety group, the intent and the correction that waits, in one transaction; the
compensations; the files, a step half done first and the chosen paths over that; one transaction
with the person's word as a decision, what it supersedes, its group, and the plan at the first step.
Why: as with a rollback, whoever comes next can finish from what is on record, since all of it may
be repeated. An error puts the files back, and then lets go of intent and correction together.
What is not guaranteed: a compensation that ran stays done. The steps are not done again here; until
a resume does them, the sandboxes lack what they had made.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import UnitOfWorkFactory
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    stands_mid_step,
)
from cleveragents.application.services.checkpoints.held import HeldPlan
from cleveragents.application.services.checkpoints.recorded_with import CommitExtras
from cleveragents.application.services.corrections.correction_impact import (
    actor_state_for,
    selection_of,
)
from cleveragents.application.services.effects.compensations import Compensations
from cleveragents.application.services.execute.run_state import links_to
from cleveragents.application.services.rollback.rollback_files import ChangedResource, RollbackFiles
from cleveragents.domain.action import step_number
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointMoment, CheckpointReason
from cleveragents.domain.correction import Correction, CorrectionStatus
from cleveragents.domain.decision import Decision, DecisionContext, DecisionType
from cleveragents.domain.effects import EffectReport
from cleveragents.domain.errors import PlanError
from cleveragents.domain.plan import Plan


class Corrected(Struct, frozen=True, kw_only=True):
    """It is in force; `safety` is the state before it."""

    plan: Plan
    correction: Correction
    safety: CheckpointGroup
    changed: Sequence[ChangedResource]
    effects: EffectReport


class CorrectionFinisher(Struct, frozen=True):
    _unit_of_work: UnitOfWorkFactory
    _checkpoints: CheckpointService
    _files: RollbackFiles
    _compensations: Compensations

    def begin(self, held: HeldPlan, correction: Correction) -> tuple[HeldPlan, Correction]:
        """Keep the present and store the intent, in one transaction. Nothing else changes yet."""
        plan = held.plan
        moment = CheckpointMoment(
            reason=CheckpointReason.BEFORE_ROLLBACK,
            source="correct",
            label=f"before correction of {_which(correction)}",
            decision_id=correction.decision_id,
            step_index=correction.step_index or 0,
            mid_step=stands_mid_step(plan, held.resources, self._checkpoints.head_of(plan)),
            rollback_target=correction.target_group,
        )
        additions = CommitExtras(intended=correction)
        plan, safety = self._checkpoints.record(plan, held.resources, moment, additions)
        return replace(held, plan=plan), replace(correction, safety_group=safety.group_id)

    def pending(self, plan: Plan) -> Correction | None:
        if plan.rollback_target is None:
            return None
        with self._unit_of_work.reading() as uow:
            found = uow.corrections.of_plan(plan.plan_id)
        waiting = [item for item in found if item.status is CorrectionStatus.PENDING]
        return waiting[-1] if waiting else None

    def finish(self, held: HeldPlan, correction: Correction) -> Corrected:
        """May be repeated after a kill at any moment; on an error everything is put back."""
        plan, resources = held.plan, held.resources
        assert correction.target_group is not None and plan.safety_group is not None
        with self._unit_of_work.reading() as uow:
            target = uow.checkpoints.get(correction.target_group)
            safety = uow.checkpoints.get(plan.safety_group)
            state = actor_state_for(uow, plan, correction, target)
            corrected = uow.decisions.get(correction.decision_id)
            staying = [d for d in uow.decisions.of_plan(plan.plan_id) if _stays(d, correction)]
        effects = self._compensations.undo_of(plan, correction.affected)
        try:
            changed = self._files.restore_only(
                resources,
                target,
                selection_of(correction.restored),
                undoes_step=stands_mid_step(plan, resources, safety),
            )
        except PlanError as error:
            self._files.put_back(resources, plan, safety, error)
            with self._unit_of_work() as uow:
                uow.plans.save(plan.abandon_rollback())
                uow.corrections.save(correction.abandoned())
                uow.commit()
            raise
        taking = _TakingOver(
            correction=correction.done(), corrected=corrected, latest=staying[-1], state=state
        )
        plan, correction = self._record(held, taking), taking.correction
        return Corrected(
            plan=plan, correction=correction, safety=safety, changed=changed, effects=effects
        )

    def _record(self, held: HeldPlan, taking: "_TakingOver") -> Plan:
        done = taking.correction
        first = done.steps[0] if done.steps else held.plan.last_completed_step + 1
        plan = held.plan.corrected(first, taking.state)
        decision = _intervention(plan, done, taking.corrected, first)
        moment = CheckpointMoment(
            reason=CheckpointReason.DECISION,
            source="correct",
            label=f"correction {plan.attempt - 1}: {_short(done.guidance)}",
            decision_id=decision.decision_id,
            step_index=first,
            undo_group=done.safety_group,
        )
        additions = CommitExtras(
            decision=decision,
            dependencies=links_to(plan.action, decision.decision_id, taking.latest),
            in_force=done,
            kept_because=f"kept as it was when `{_short(taking.corrected.chosen)}` was corrected",
        )
        self._checkpoints.record(plan, held.resources, moment, additions)
        with self._unit_of_work.reading() as uow:
            # Read again, for its action has the step that was replaced.
            return uow.plans.get(plan.plan_id)


class _TakingOver(Struct, frozen=True, kw_only=True):
    """A correction that is about to be in force, the decision that it corrects, the last one that
    stays, and what the actor remembers then."""

    correction: Correction
    corrected: Decision
    latest: Decision
    state: Mapping[str, Any]


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
        context=DecisionContext(
            correction=correction.correction_id,
            corrected=corrected.decision_id,
            steps=correction.steps,
            first_step=first,
            actor_state=plan.actor_state,
        ),
        phase=corrected.phase,
        step_index=corrected.step_index,
        attempt=plan.attempt,
        created_at=correction.created_at,
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def _which(correction: Correction) -> str:
    index = correction.step_index
    return "the plan" if index is None else f"step {step_number(index)}"
