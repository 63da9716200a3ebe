"""Undoing outside effects: the compensating tools that a rollback runs, and what it cannot."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from cleveragents.application.ports.runtime import (
    Runtime,
    ToolContext,
    Tools,
    UnitOfWork,
)
from cleveragents.application.services.checkpoints.held import descendants
from cleveragents.application.services.effects.effect_ledger import EffectLedger, cut_off_in
from cleveragents.domain.action import ToolSpec
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.decision import Fork, lineage
from cleveragents.domain.effects import CUT_OFF, Effect, EffectReport, EffectState, report, turned
from cleveragents.domain.errors import ToolError, ToolNotStartedError
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import SandboxAddress, SandboxStatus
from cleveragents.domain.subplan import ChildPlan

_TO_UNDO = (EffectState.DONE, EffectState.SKIPPED, EffectState.COMPENSATING)


class Compensations(Struct, frozen=True):
    _runtime: Runtime
    _ledger: EffectLedger
    _tools: Tools
    _end_tools: Callable[[PlanId], None]
    _default_timeout: float

    def undo(self, plan: Plan, target: CheckpointGroup) -> EffectReport:
        """Compensate what going back to `target` undoes, newest first, and tell what it leaves.

        The intent to go back is stored. May be repeated: what is compensated stays so. A
        compensation that fails is told, and stops nothing.
        """
        found = self._touched(plan, target)
        if self._ledger.mark_uncertain(found.cut_off):
            found = self._touched(plan, target)
        after = self._all_undone(plan, found.undone)
        return report(after, found.revived, found.children)

    def undo_of(self, plan: Plan, decisions: Collection[DecisionId]) -> EffectReport:
        """The same for what a correction takes back: all that came of these decisions."""
        with self._runtime.unit_of_work.reading() as uow:
            children = _spawned_by(uow, plan.plan_id, decisions)
            cut_off = cut_off_in(uow, [plan.plan_id, *(child.plan_id for child in children)])
        self._ledger.mark_uncertain(cut_off)
        with self._runtime.unit_of_work.reading() as uow:
            own = [e for e in uow.effects.of_plan(plan.plan_id) if e.decision_id in decisions]
            undone = [*own, *(effect for child in children for effect in _live(uow, child))]
        newest_first = sorted(undone, key=lambda effect: effect.started_at, reverse=True)
        after = self._all_undone(plan, newest_first)
        return report(after, (), {child.plan_id: child.name for child in children})

    def foresee(self, plan: Plan, target: CheckpointGroup) -> EffectReport:
        """What `undo` would tell if every compensation works; nothing is run or stored."""
        found, now = self._touched(plan, target), self._runtime.clock.now()
        after = [self._foreseen(effect, now) for effect in found.undone]
        return report(after, found.revived, found.children)

    def _foreseen(self, effect: Effect, now: datetime) -> Effect:
        if effect.state is EffectState.STARTED:
            return effect.uncertain(CUT_OFF, now)
        if effect.compensate is not None and effect.state in _TO_UNDO:
            return effect.compensated(now)
        return effect

    def _touched(self, plan: Plan, target: CheckpointGroup) -> "_Touched":
        with self._runtime.unit_of_work.reading() as uow:
            return _touched(uow, plan, target)

    def _all_undone(self, plan: Plan, effects: Sequence[Effect]) -> Sequence[Effect]:
        try:
            return [self._undone(plan, effect) for effect in effects]
        finally:
            # The files are restored next: nothing that was started for this may write after that.
            self._end_tools(plan.plan_id)

    def _undone(self, plan: Plan, effect: Effect) -> Effect:
        if effect.compensate is None or effect.state not in _TO_UNDO:
            return effect
        spec = self._tools.find(plan.action, effect.compensate)
        if effect.state is EffectState.COMPENSATING and not spec.idempotent:
            text = f"its compensation {spec.name} was cut off"
            return self._stored(effect.uncertain(text, self._runtime.clock.now()))
        # Stored before it runs: a kill in between must not make it run a second time unasked.
        effect = self._stored(effect.compensating())
        return self._stored(self._run(plan, effect, spec))

    def _run(self, plan: Plan, effect: Effect, spec: ToolSpec) -> Effect:
        context = ToolContext(
            plan_id=plan.plan_id,
            sandboxes=self._sandboxes(plan.plan_id),
            timeout=spec.timeout or self._default_timeout,
            confinement=plan.action.confinement,
            servers={server.name: server.command for server in plan.action.servers},
        )
        try:
            self._tools.run(spec, _arguments(effect, spec), context)
        except ToolNotStartedError as error:
            return effect.still_there(f"its compensation {spec.name}: {error.message}")
        except ToolError as error:
            text = f"its compensation {spec.name} failed: {error.message}"
            return effect.uncertain(text, self._runtime.clock.now())
        return effect.compensated(self._runtime.clock.now())

    def _stored(self, effect: Effect) -> Effect:
        """Keep it; a run that was skipped shares the fate of the one it stands for."""
        with self._runtime.unit_of_work() as uow:
            uow.effects.put(effect)
            if effect.stands_for is not None and effect.state is EffectState.COMPENSATED:
                earlier = uow.effects.get(effect.stands_for)
                uow.effects.put(earlier.compensated(self._runtime.clock.now()))
            uow.commit()
        return effect

    def _sandboxes(self, plan_id: PlanId) -> Mapping[str, SandboxAddress]:
        with self._runtime.unit_of_work.reading() as uow:
            found = uow.resources.of_plan(plan_id)
        return {r.name: r.address for r in found if r.status is SandboxStatus.READY}


def _arguments(effect: Effect, spec: ToolSpec) -> Mapping[str, Any]:
    """Those of the original that the tool takes, and beside them what the original gave back."""
    result = {**effect.result.values, "output": effect.result.output.strip()}
    available = {**{name: str(value) for name, value in result.items()}, **effect.arguments}
    wanted = {parameter.name for parameter in spec.parameters}
    return {name: value for name, value in available.items() if name in wanted}


class _Touched(Struct, frozen=True, kw_only=True):
    """What going back undoes, newest first, and what it brings back; the children by name.

    `cut_off` are those of all of them of which only the beginning is on record.
    """

    undone: tuple[Effect, ...]
    revived: tuple[Effect, ...]
    children: Mapping[PlanId, str]
    cut_off: tuple[Effect, ...]


def _touched(uow: UnitOfWork, plan: Plan, target: CheckpointGroup) -> _Touched:
    forks = list(uow.timelines.of_plan(plan.plan_id))
    fork = Fork(timeline=len(forks) + 1, start=target.position)
    before, after = lineage(plan.timeline, forks), lineage(fork.timeline, [*forks, fork])
    own = turned(uow.effects.of_plan(plan.plan_id), before, after)
    children = uow.subplans.of_parent(plan.plan_id)
    gone = [c for c in children if c.counts and not c.on_line(after).counts]
    back = [c for c in children if not c.counts and c.on_line(after).counts]
    below = [item for child in gone for item in _with_children(uow, child)]
    again = [item for child in back for item in _with_children(uow, child)]
    undone = [*own.undone, *(effect for child in below for effect in _live(uow, child))]
    return _Touched(
        undone=tuple(sorted(undone, key=lambda effect: effect.started_at, reverse=True)),
        revived=(*own.revived, *(effect for child in again for effect in _live(uow, child))),
        children={child.plan_id: child.name for child in (*below, *again)},
        cut_off=cut_off_in(uow, [plan.plan_id, *(c.plan_id for c in (*below, *again))]),
    )


def _spawned_by(
    uow: UnitOfWork, plan_id: PlanId, decisions: Collection[DecisionId]
) -> Sequence[ChildPlan]:
    found = [c for c in uow.subplans.of_parent(plan_id) if c.counts and c.decision_id in decisions]
    return [item for child in found for item in _with_children(uow, child)]


def _with_children(uow: UnitOfWork, child: ChildPlan) -> Sequence[ChildPlan]:
    return [child, *descendants(uow, child.plan_id, counting=True)]


def _live(uow: UnitOfWork, child: ChildPlan) -> Sequence[Effect]:
    """All that counts in the child's own history."""
    timeline = uow.plans.get(child.plan_id).timeline
    reach = lineage(timeline, uow.timelines.of_plan(child.plan_id))
    return turned(uow.effects.of_plan(child.plan_id), reach, {}).undone
