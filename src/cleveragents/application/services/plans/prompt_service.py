"""Telling a plan something: guidance as a decision, with the checkpoint that belongs to it."""

from msgspec import Struct

from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.checkpoints.recorded_with import CommitExtras
from cleveragents.application.services.execute.run_state import links_to
from cleveragents.application.services.rollback.rollback_service import RollbackService
from cleveragents.application.services.sandboxes.unfinished_step import UnfinishedStep
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason
from cleveragents.domain.decision import Decision, DecisionContext, DecisionType
from cleveragents.domain.errors import PlanStateError
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan


class Told(Struct, frozen=True, kw_only=True):
    plan: Plan
    decision: Decision


class PromptService(Struct, frozen=True):
    _runtime: Runtime
    _checkpoints: CheckpointService
    _rollbacks: RollbackService
    _unfinished: UnfinishedStep

    def prompt(self, plan_id: PlanId, guidance: str) -> Told:
        """Add guidance to a plan that has failed or waits; a half-done step is undone first.

        An actor that decides its own steps goes on even if it had finished.
        """
        with self._runtime.locks.hold(plan_id, "prompt"):
            held = self._rollbacks.take_up(plan_id)
            plan = held.plan
            _refuse_if_it_does_not_wait(plan)
            if plan.head is not None:
                plan = self._unfinished.undo(plan, held.resources)
            with self._runtime.unit_of_work.reading() as uow:
                made = [d for d in uow.decisions.of_plan(plan.plan_id) if not d.superseded]
            decision = self._decision(plan, guidance, made[0])
            told = self._record(plan, held.resources, decision, made[-1])
            return Told(plan=told, decision=decision)

    def _decision(self, plan: Plan, guidance: str, root: Decision) -> Decision:
        failed = plan.error.message if plan.error else None
        return Decision(
            decision_id=DecisionId(self._runtime.ids.new()),
            plan_id=plan.plan_id,
            parent_id=root.decision_id,
            position=plan.here,
            type=DecisionType.USER_INTERVENTION,
            question=f"What helps against: {failed}" if failed else "What else is to be known?",
            chosen=guidance,
            rationale="a person said so",
            context=DecisionContext(
                first_step=plan.last_completed_step + 1, actor_state=plan.actor_state
            ),
            phase=plan.phase,
            step_index=plan.last_completed_step + 1,
            attempt=plan.attempt,
            created_at=self._runtime.clock.now(),
        )

    def _record(
        self, plan: Plan, resources: HeldResources, decision: Decision, latest: Decision
    ) -> Plan:
        link = links_to(plan.action, decision.decision_id, latest)
        additions = CommitExtras(decision=decision, dependencies=link)
        if plan.executed:
            plan = plan.reopened(plan.last_completed_step + 1, plan.actor_state)
        if plan.head is None:
            # Nothing has run yet, so that there is nothing to capture.
            return self._checkpoints.save_progress(plan.advised(), additions)
        moment = CheckpointMoment(
            reason=CheckpointReason.DECISION,
            source="prompt",
            label=f"prompt: {' '.join(decision.chosen.split())[:60]}",
            decision_id=decision.decision_id,
            step_index=plan.last_completed_step + 1,
        )
        return self._checkpoints.record_decision(plan.advised(), resources, moment, additions)


def _refuse_if_it_does_not_wait(plan: Plan) -> None:
    plan.refuse_if_final()
    plan.refuse_if_applying()
    if plan.executed and not plan.action.decides:
        raise PlanStateError(
            f"plan {plan.plan_id} has done all its steps, so that nobody would listen",
            "correct a decision instead: agents plan correct --mode revert --guidance TEXT"
            " <DECISION_ID>",
        )
