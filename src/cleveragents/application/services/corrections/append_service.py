"""Adding to a plan: a child plan at its end that carries out a person's guidance."""

from msgspec import Struct

from cleveragents.application.ports.actors import ActionReader
from cleveragents.application.ports.runtime import (
    Runtime,
)
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    stands_mid_step,
)
from cleveragents.application.services.checkpoints.held import HeldPlan
from cleveragents.application.services.checkpoints.recorded_with import CommitExtras
from cleveragents.application.services.corrections.correction_impact import (
    refuse_if_settled,
    refuse_if_superseded,
)
from cleveragents.application.services.execute.run_state import links_to
from cleveragents.application.services.plans.plan_lookup import find_decision
from cleveragents.application.services.rollback.rollback_service import RollbackService
from cleveragents.domain.action import SUBPLANS, Action, Step, Subplan, Subplans
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason
from cleveragents.domain.correction import Correction, CorrectionMode, CorrectionStatus
from cleveragents.domain.decision import Decision, DecisionContext, DecisionType
from cleveragents.domain.errors import CorrectionRefusedError
from cleveragents.domain.ids import CorrectionId, DecisionId
from cleveragents.domain.plan import Plan


class Appended(Struct, frozen=True, kw_only=True):
    """It is in force; the step at `correction.step_index` spawns the child."""

    plan: Plan
    correction: Correction


class AppendService(Struct, frozen=True):
    _runtime: Runtime
    _checkpoints: CheckpointService
    _rollbacks: RollbackService
    _actions: ActionReader

    def append(self, wanted: str, guidance: str, step_file: str | None) -> Appended:
        """Keep everything, and add a child plan with the steps of the file; it is queued.

        An actor that decides its own steps needs no file: the child has the same actor.
        """
        with self._runtime.unit_of_work.reading() as uow:
            found = find_decision(uow, wanted)
        with self._runtime.locks.hold(found.plan_id, "correct"):
            held = self._rollbacks.take_up(found.plan_id)
            with self._runtime.unit_of_work.reading() as uow:
                decision = uow.decisions.get(found.decision_id)
            steps = self._guarded(held.plan, decision, step_file)
            return self._append(held, decision, guidance, steps)

    def _guarded(self, plan: Plan, decision: Decision, step_file: str | None) -> tuple[Step, ...]:
        refuse_if_settled(plan)
        refuse_if_superseded(plan, decision)
        if plan.head is None:
            raise CorrectionRefusedError(
                f"plan {plan.plan_id} has not started, so that there is nothing to add to",
                f"agents plan execute {plan.plan_id}",
            )
        if step_file is None and plan.action.decides:
            return ()
        if step_file is None:
            raise CorrectionRefusedError(
                "the steps of this plan are written down, so that it cannot find out by itself"
                " what your guidance needs",
                "give the steps to add with --step-file",
            )
        return tuple(self._actions.read_steps(step_file, plan.action))

    def _append(
        self, held: HeldPlan, decision: Decision, guidance: str, steps: tuple[Step, ...]
    ) -> Appended:
        """One transaction: no file changes, nothing but validations is taken back."""
        plan = held.plan
        with self._runtime.unit_of_work.reading() as uow:
            live = [d for d in uow.decisions.of_plan(plan.plan_id) if not d.superseded]
        judged = [d for d in live if _is_at_the_end(d, plan)]
        correction = self._correction(plan, decision, guidance, steps, judged)
        waiting = _waiting(plan, judged)
        intervention = _intervention(waiting, correction, decision)
        moment = CheckpointMoment(
            reason=CheckpointReason.DECISION,
            source="correct",
            label=f"append: {' '.join(guidance.split())[:60]}",
            decision_id=intervention.decision_id,
            step_index=waiting.last_completed_step + 1,
            mid_step=stands_mid_step(plan, held.resources, self._checkpoints.head_of(plan)),
        )
        link = links_to(plan.action, intervention.decision_id, _latest(live, judged))
        additions = CommitExtras(decision=intervention, dependencies=link, in_force=correction)
        self._checkpoints.record(waiting, held.resources, moment, additions)
        with self._runtime.unit_of_work.reading() as uow:
            # Read again, for its action has one more step.
            return Appended(plan=uow.plans.get(plan.plan_id), correction=correction)

    def _correction(
        self,
        plan: Plan,
        decision: Decision,
        guidance: str,
        steps: tuple[Step, ...],
        judged: list[Decision],
    ) -> Correction:
        place = len(plan.action.steps)
        return Correction(
            correction_id=CorrectionId(self._runtime.ids.new()),
            plan_id=plan.plan_id,
            decision_id=decision.decision_id,
            mode=CorrectionMode.APPEND,
            guidance=guidance,
            status=CorrectionStatus.DONE,
            intervention_id=DecisionId(self._runtime.ids.new()),
            affected=tuple(item.decision_id for item in judged),
            steps=(place,),
            step_index=place,
            replacement=_spawning(plan.action, guidance, steps, place),
            created_at=self._runtime.clock.now(),
        )


def _is_at_the_end(decision: Decision, plan: Plan) -> bool:
    """A validation after which the work did not go on: it has to run again after what is added."""
    if decision.type is not DecisionType.VALIDATION_RESPONSE or decision.step_index is None:
        return False
    return decision.step_index >= len(plan.action.steps)


def _latest(live: list[Decision], judged: list[Decision]) -> Decision:
    return [decision for decision in live if decision not in judged][-1]


def _waiting(plan: Plan, judged: list[Decision]) -> Plan:
    """Before the first validation, if any has run: what is added comes before them."""
    if not judged:
        return plan.reopened(plan.last_completed_step + 1, plan.actor_state)
    first = judged[0]
    index = plan.last_completed_step + 1 if first.step_index is None else first.step_index
    assert first.context.actor_state is not None  # of a validation it is on record
    return plan.reopened(index, first.context.actor_state)


def _spawning(action: Action, guidance: str, steps: tuple[Step, ...], place: int) -> Step:
    child = Subplan(
        name=f"append-{place}",
        description=guidance,
        resources=tuple(spec.name for spec in action.resources),
        steps=steps,
    )
    line = " ".join(guidance.split())
    return Step(name=line[:200], tool=SUBPLANS, subplans=Subplans(plans=(child,)))


def _intervention(plan: Plan, correction: Correction, decision: Decision) -> Decision:
    assert correction.intervention_id is not None
    return Decision(
        decision_id=correction.intervention_id,
        plan_id=plan.plan_id,
        parent_id=decision.decision_id,
        position=plan.here,
        type=DecisionType.USER_INTERVENTION,
        question=f"What shall be added to `{decision.chosen}`?",
        chosen=correction.guidance,
        rationale=f"a person added to decision {decision.decision_id}",
        context=DecisionContext(
            correction=correction.correction_id,
            steps=correction.steps,
            first_step=correction.step_index,
            actor_state=plan.actor_state,
        ),
        phase=plan.phase,
        step_index=correction.step_index,
        attempt=plan.attempt,
        created_at=correction.created_at,
    )
