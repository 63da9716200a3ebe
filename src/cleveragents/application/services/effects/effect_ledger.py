"""The ledger of outside effects: written before a tool starts, asked before it runs again."""

from collections.abc import Sequence

from msgspec.structs import replace

from cleveragents.application.ports.runtime import Clock, IdSource, UnitOfWork, UnitOfWorkFactory
from cleveragents.domain.action import Step, ToolSpec
from cleveragents.domain.decision import Decision
from cleveragents.domain.effects import CUT_OFF, Effect, EffectState, earlier_effect
from cleveragents.domain.group_builder import hash_of
from cleveragents.domain.ids import EffectId, PlanId
from cleveragents.domain.plan import Plan


class EffectLedger:
    def __init__(self, unit_of_work: UnitOfWorkFactory, ids: IdSource, clock: Clock) -> None:
        self._unit_of_work = unit_of_work
        self._ids = ids
        self._clock = clock

    def begin(
        self, plan: Plan, decision: Decision, step: Step, spec: ToolSpec
    ) -> tuple[Plan, Effect]:
        """Make durable that the effect may happen from now on. Only then may the tool start."""
        plan = plan.tick()
        effect = self._effect(plan, decision, step, spec)
        with self._unit_of_work() as uow:
            uow.effects.put(effect)
            uow.plans.save(plan)
            uow.commit()
        return plan, effect

    def skipped(
        self, plan: Plan, decision: Decision, step: Step, spec: ToolSpec, earlier: Effect
    ) -> Effect:
        """What the step's own commit stores if a person took an earlier run as done."""
        found = self._effect(plan, decision, step, spec)
        return replace(
            found,
            state=EffectState.SKIPPED,
            result=earlier.result,
            stands_for=earlier.effect_id,
            finished_at=found.started_at,
        )

    def forget(self, effect: Effect) -> None:
        """The tool could not even be started, so nothing happened."""
        with self._unit_of_work() as uow:
            uow.effects.remove(effect)
            uow.commit()

    def mark_uncertain(self, plan_id: PlanId) -> Sequence[Effect]:
        """Nobody runs a tool of this plan now: whatever had only started is uncertain.

        The caller holds the plan's lock. Gives back those that it found.
        """
        with self._unit_of_work.reading() as uow:
            open_ = [e for e in uow.effects.of_plan(plan_id) if e.state is EffectState.STARTED]
        if not open_:
            return ()
        with self._unit_of_work() as uow:
            for effect in open_:
                uow.effects.put(effect.uncertain(CUT_OFF, self._clock.now()))
            uow.commit()
        return open_

    def standing(self, plan_id: PlanId, step: Step, step_index: int) -> Effect | None:
        """The earlier run of this very step that must not be repeated unasked."""
        with self._unit_of_work.reading() as uow:
            plans = _in_its_place(uow, plan_id)
            effects = [e for plan in plans for e in uow.effects.of_step(plan, step_index)]
        return earlier_effect(effects, (step_index, step.tool, hash_of(step.arguments)))

    def _effect(self, plan: Plan, decision: Decision, step: Step, spec: ToolSpec) -> Effect:
        assert decision.step_index is not None
        return Effect(
            effect_id=EffectId(self._ids.new()),
            plan_id=plan.plan_id,
            decision_id=decision.decision_id,
            position=plan.here,
            step_index=decision.step_index,
            tool=spec.name,
            arguments=step.arguments,
            arguments_hash=hash_of(step.arguments),
            effects=spec.outside_effects,
            compensate=spec.compensate,
            started_at=self._clock.now(),
        )


def _in_its_place(uow: UnitOfWork, plan_id: PlanId) -> Sequence[PlanId]:
    """The plan itself; of a child also those that did the same part of the parent's work before.

    A parent that was rolled back spawns new children, which know nothing of the old ones' effects.
    """
    child = uow.subplans.get(plan_id)
    if child is None:
        return [plan_id]
    step = uow.decisions.get(child.decision_id).step_index
    return [
        other.plan_id
        for parent in _in_its_place(uow, child.parent_id)
        for other in uow.subplans.of_parent(parent)
        if other.name == child.name and uow.decisions.get(other.decision_id).step_index == step
    ]
