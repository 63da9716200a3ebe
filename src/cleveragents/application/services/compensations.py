"""Owns undoing outside effects: the compensating tools that a rollback runs, and what it cannot."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cleveragents.application.ports import Clock, ToolContext, Tools, UnitOfWorkFactory
from cleveragents.application.services.effect_ledger import EffectLedger
from cleveragents.domain.action import ToolSpec
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.decision import Fork, lineage
from cleveragents.domain.effects import (
    CUT_OFF,
    Effect,
    EffectReport,
    EffectState,
    Turn,
    report,
    turned,
)
from cleveragents.domain.errors import ToolError, ToolNotStartedError
from cleveragents.domain.ids import EffectId, PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.sandbox import SandboxStatus

_TO_UNDO = (EffectState.DONE, EffectState.SKIPPED, EffectState.COMPENSATING)


class Compensations:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        ledger: EffectLedger,
        tools: Tools,
        clock: Clock,
        default_timeout: float,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._ledger = ledger
        self._tools = tools
        self._clock = clock
        self._default_timeout = default_timeout

    def undo(self, plan: Plan, target: CheckpointGroup) -> EffectReport:
        """Compensate what going back to `target` undoes, newest first, and tell what it leaves.

        The intent to go back is stored. May be repeated: what is compensated stays so. A
        compensation that fails is told, and stops nothing.
        """
        self._ledger.settle(plan.plan_id)
        turn = self._turn(plan, target)
        after = [self._undone(plan, effect) for effect in turn.undone]
        return report(after, turn.revived)

    def foresee(self, plan: Plan, target: CheckpointGroup) -> EffectReport:
        """What `undo` would tell if every compensation works; nothing is run or stored."""
        turn, now = self._turn(plan, target), self._clock.now()
        after = [self._foreseen(effect, now) for effect in turn.undone]
        return report(after, turn.revived)

    def _foreseen(self, effect: Effect, now: datetime) -> Effect:
        if effect.state is EffectState.STARTED:
            return effect.uncertain(CUT_OFF, now)
        if effect.compensate is not None and effect.state in _TO_UNDO:
            return effect.compensated(now)
        return effect

    def _turn(self, plan: Plan, target: CheckpointGroup) -> Turn:
        with self._unit_of_work.reading() as uow:
            effects = uow.effects.of_plan(plan.plan_id)
            forks = list(uow.timelines.of_plan(plan.plan_id))
        if not effects:
            return Turn(undone=(), revived=())
        fork = Fork(timeline=len(forks) + 1, start=target.position)
        before = lineage(plan.timeline, forks)
        return turned(effects, before, lineage(fork.timeline, [*forks, fork]))

    def _undone(self, plan: Plan, effect: Effect) -> Effect:
        if effect.compensate is None or effect.state not in _TO_UNDO:
            return effect
        spec = self._tools.find(plan.action, effect.compensate)
        if effect.state is EffectState.COMPENSATING and not spec.idempotent:
            text = f"its compensation {spec.name} was cut off"
            return self._stored(effect.uncertain(text, self._clock.now()))
        # Stored before it runs: a kill in between must not make it run a second time unasked.
        effect = self._stored(effect.compensating())
        return self._stored(self._run(plan, effect, spec))

    def _run(self, plan: Plan, effect: Effect, spec: ToolSpec) -> Effect:
        context = ToolContext(
            plan_id=plan.plan_id,
            sandboxes=self._sandboxes(plan.plan_id),
            timeout=spec.timeout or self._default_timeout,
        )
        try:
            self._tools.run(spec, _arguments(effect, spec), context)
        except ToolNotStartedError as error:
            return effect.still_there(f"its compensation {spec.name}: {error.message}")
        except ToolError as error:
            text = f"its compensation {spec.name} failed: {error.message}"
            return effect.uncertain(text, self._clock.now())
        return effect.compensated(self._clock.now())

    def _stored(self, effect: Effect) -> Effect:
        """Keep it; a run that was skipped shares the fate of the one it stands for."""
        with self._unit_of_work() as uow:
            uow.effects.put(effect)
            if effect.stands_for is not None and effect.state is EffectState.COMPENSATED:
                earlier = _found(uow.effects.of_plan(effect.plan_id), effect.stands_for)
                uow.effects.put(earlier.compensated(self._clock.now()))
            uow.commit()
        return effect

    def _sandboxes(self, plan_id: PlanId) -> Mapping[str, str]:
        with self._unit_of_work.reading() as uow:
            found = uow.resources.of_plan(plan_id)
        return {r.name: r.sandbox_path for r in found if r.status is SandboxStatus.READY}


def _arguments(effect: Effect, spec: ToolSpec) -> Mapping[str, Any]:
    """Those of the original that the tool takes, and beside them what the original gave back."""
    result = {**effect.result.values, "output": effect.result.output.strip()}
    available = {**{name: str(value) for name, value in result.items()}, **effect.arguments}
    wanted = {parameter.name for parameter in spec.parameters}
    return {name: value for name, value in available.items() if name in wanted}


def _found(effects: Sequence[Effect], effect_id: EffectId) -> Effect:
    return next(effect for effect in effects if effect.effect_id == effect_id)
