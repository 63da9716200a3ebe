"""The ledger of outside effects: written before a tool starts, asked before it runs again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.action import Step, ToolSpec
from cleveragents.domain.decision import Decision
from cleveragents.domain.effects import CUT_OFF, Effect, EffectState, earlier_effect
from cleveragents.domain.group_builder import hash_of
from cleveragents.domain.ids import EffectId, PlanId
from cleveragents.domain.plan import Plan

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import Runtime, UnitOfWork


class EffectLedger(Struct, frozen=True):
    _runtime: "Runtime"

    def begin(
        self, plan: Plan, decision: Decision, step: Step, spec: ToolSpec
    ) -> tuple[Plan, Effect]:
        """Make durable that the effect may happen from now on. Only then may the tool start."""
        plan = plan.tick()
        effect = self._effect(plan, decision, step, spec)
        with self._runtime.unit_of_work() as uow:
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
        with self._runtime.unit_of_work() as uow:
            uow.effects.remove(effect)
            uow.commit()

    def mark_uncertain(self, cut_off: Sequence[Effect]) -> Sequence[Effect]:
        """Nobody runs a tool of their plans now, whose locks are held: what had only started is
        uncertain. Gives back what they are from now on."""
        if not cut_off:
            return ()
        uncertain = [effect.uncertain(CUT_OFF, self._runtime.clock.now()) for effect in cut_off]
        with self._runtime.unit_of_work() as uow:
            for effect in uncertain:
                uow.effects.put(effect)
            uow.commit()
        return uncertain

    def mark_all_uncertain(self, plan_id: PlanId) -> Sequence[Effect]:
        """The same for all of a plan."""
        with self._runtime.unit_of_work.reading() as uow:
            cut_off = cut_off_in(uow, [plan_id])
        return self.mark_uncertain(cut_off)

    def _effect(self, plan: Plan, decision: Decision, step: Step, spec: ToolSpec) -> Effect:
        assert decision.step_index is not None
        return Effect(
            effect_id=EffectId(self._runtime.ids.new()),
            plan_id=plan.plan_id,
            decision_id=decision.decision_id,
            position=plan.here,
            step_index=decision.step_index,
            tool=spec.name,
            arguments=step.arguments,
            arguments_hash=hash_of(step.arguments),
            effects=spec.outside_effects,
            compensate=spec.compensate,
            started_at=self._runtime.clock.now(),
        )


def cut_off_in(uow: "UnitOfWork", plans: Iterable[PlanId]) -> tuple[Effect, ...]:
    """Those of which only the beginning is on record."""
    every = (effect for plan_id in plans for effect in uow.effects.of_plan(plan_id))
    return tuple(effect for effect in every if effect.state is EffectState.STARTED)


EffectsOfSteps = Mapping[int, Sequence[Effect]]


def earlier_effects(uow: "UnitOfWork", plan_id: PlanId) -> EffectsOfSteps:
    """What each step has done outside, in this plan or in one that did the same part of the work
    before it."""
    found: dict[int, list[Effect]] = {}
    for plan in _in_its_place(uow, plan_id):
        for effect in uow.effects.of_plan(plan):
            found.setdefault(effect.step_index, []).append(effect)
    return found


def standing(effects: EffectsOfSteps, step: Step, step_index: int) -> Effect | None:
    """The earlier run of this very step that must not be repeated unasked."""
    key = (step_index, step.tool, hash_of(step.arguments))
    return earlier_effect(effects.get(step_index, ()), key)


def _in_its_place(uow: "UnitOfWork", plan_id: PlanId) -> Sequence[PlanId]:
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
