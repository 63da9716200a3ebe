"""What is stored, in memory: the tables, and the repositories over them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from cleveragents.domain.action import Action
from cleveragents.domain.actor_protocol import Message, PlacedStep, grown
from cleveragents.domain.applied import AppliedChange
from cleveragents.domain.checkpoint import CheckpointGroup, PrunedCheckpoint
from cleveragents.domain.correction import Correction, Supersession, Unchecked
from cleveragents.domain.decision import (
    Decision,
    DecisionType,
    Dependency,
    Fork,
    Position,
    ToolCall,
)
from cleveragents.domain.effects import Effect
from cleveragents.domain.errors import (
    CorrectionNotFoundError,
    DatabaseUnusableError,
    DecisionNotFoundError,
    PlanNotFoundError,
)
from cleveragents.domain.ids import (
    CorrectionId,
    DecisionId,
    EffectId,
    PlanId,
)
from cleveragents.domain.places import PlacedPlan, place_of
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.subplan import ChildPlan


@dataclass
class Tables:
    plans: dict[str, Plan] = field(default_factory=dict[str, Plan])
    actions: dict[str, Action] = field(default_factory=dict[str, Action])
    resources: dict[str, PlanResource] = field(default_factory=dict[str, PlanResource])
    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])
    tool_calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    groups: dict[str, CheckpointGroup] = field(default_factory=dict[str, CheckpointGroup])
    forks: dict[tuple[str, int], Fork] = field(default_factory=dict[tuple[str, int], Fork])
    pruned: dict[str, tuple[CheckpointGroup, PrunedCheckpoint]] = field(
        default_factory=dict[str, tuple[CheckpointGroup, PrunedCheckpoint]]
    )
    effects: dict[str, Effect] = field(default_factory=dict[str, Effect])
    children: dict[str, ChildPlan] = field(default_factory=dict[str, ChildPlan])
    dependencies: dict[tuple[str, str, str], Dependency] = field(
        default_factory=dict[tuple[str, str, str], Dependency]
    )
    corrections: dict[str, Correction] = field(default_factory=dict[str, Correction])
    supersessions: dict[tuple[str, str, str], Supersession] = field(
        default_factory=dict[tuple[str, str, str], Supersession]
    )
    unchecked: dict[tuple[str, str, Position], Unchecked] = field(
        default_factory=dict[tuple[str, str, Position], Unchecked]
    )
    messages: dict[tuple[str, str], Message] = field(default_factory=dict[tuple[str, str], Message])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    applied: dict[str, AppliedChange] = field(default_factory=dict[str, AppliedChange])

    def copy(self) -> "Tables":
        return Tables(
            dict(self.plans),
            dict(self.actions),
            dict(self.resources),
            dict(self.decisions),
            dict(self.tool_calls),
            dict(self.groups),
            dict(self.forks),
            dict(self.pruned),
            dict(self.effects),
            dict(self.children),
            dict(self.dependencies),
            dict(self.corrections),
            dict(self.supersessions),
            dict(self.unchecked),
            dict(self.messages),
            dict(self.numbers),
            dict(self.applied),
        )


class MemoryPlans:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, plan: Plan) -> None:
        assert plan.plan_id not in self._tables.plans
        self._tables.plans[plan.plan_id] = plan
        self._tables.actions[plan.plan_id] = plan.action

    def save(self, plan: Plan) -> None:
        self.get(plan.plan_id)
        self._tables.plans[plan.plan_id] = plan

    def give_action(self, plan: Plan) -> None:
        self.save(plan)
        self._tables.actions[plan.plan_id] = plan.action

    def get(self, plan_id: PlanId) -> Plan:
        if plan_id not in self._tables.plans:
            raise PlanNotFoundError(plan_id)
        return self._corrected(self._tables.plans[plan_id])

    def refuse_overtaken(self, plan_id: PlanId) -> None:
        """There is one process only."""

    def next_number(self, plan: Plan) -> int:
        numbers = self._tables.numbers
        numbers[plan.action.name] = numbers.get(plan.action.name, 0) + 1
        return numbers[plan.action.name]

    def starting_with(self, prefix: str) -> Sequence[PlanId]:
        return sorted(PlanId(key) for key in self._tables.plans if key.startswith(prefix))

    def ending_with(self, ending: str) -> Sequence[PlanId]:
        return sorted(PlanId(key) for key in self._tables.plans if key.endswith(ending))

    def _corrected(self, plan: Plan) -> Plan:
        placed: list[tuple[int, PlacedStep]] = []
        for item in self._tables.corrections.values():
            made = self._tables.decisions.get(item.intervention_id or "")
            if made is None or item.plan_id != plan.plan_id or made.superseded:
                continue
            if item.replacement is not None and item.step_index is not None:
                step = PlacedStep(index=item.step_index, step=item.replacement)
                placed.append((made.position.seq, step))
        for made in self._tables.decisions.values():
            if made.plan_id == plan.plan_id and made.decided and not made.superseded:
                judges = made.type is DecisionType.VALIDATION_RESPONSE
                index = made.step_index or 0
                step = PlacedStep(index=index, step=made.decided.step, judges=judges)
                placed.append((made.position.seq, step))
        ordered = [step for _, step in sorted(placed, key=lambda item: item[0])]
        return replace(plan, action=grown(self._tables.actions[plan.plan_id], ordered))

    def list(self) -> Sequence[Plan]:
        return [self._corrected(plan) for plan in reversed(self._tables.plans.values())]

    def places(self) -> Sequence[PlacedPlan]:
        mine = [p for p in self.list() if p.plan_id not in self._tables.children]
        return [
            PlacedPlan(
                plan_id=plan.plan_id,
                action=plan.action.name,
                number=plan.number,
                place=place_of(MemoryResources(self._tables).of_plan(plan.plan_id)),
            )
            for plan in mine
        ]

    def of_action(self, name: str, number: int | None = None) -> Sequence[PlacedPlan]:
        found = [plan for plan in self.places() if plan.action == name]
        return [plan for plan in found if number is None or plan.number == number]


class MemoryResources:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, *resources: PlanResource) -> None:
        for resource in resources:
            self._tables.resources[resource.resource_id] = resource

    def save(self, *resources: PlanResource) -> None:
        assert all(resource.resource_id in self._tables.resources for resource in resources)
        self.add(*resources)

    def of_plan(self, plan_id: PlanId) -> Sequence[PlanResource]:
        return [r for _, r in sorted(self._tables.resources.items()) if r.plan_id == plan_id]


class MemoryDecisions:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, decision: Decision) -> None:
        assert decision.decision_id not in self._tables.decisions
        self._tables.decisions[decision.decision_id] = decision

    def get(self, decision_id: DecisionId) -> Decision:
        if decision_id not in self._tables.decisions:
            raise DecisionNotFoundError(decision_id)
        return self._tables.decisions[decision_id]

    def of_plan(self, plan_id: PlanId) -> Sequence[Decision]:
        found = [d for d in self._tables.decisions.values() if d.plan_id == plan_id]
        return sorted(found, key=lambda decision: decision.position.seq)

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[DecisionId]) -> None:
        for decision in self.of_plan(plan_id):
            gone = decision.decision_id in superseded
            self._tables.decisions[decision.decision_id] = replace(decision, superseded=gone)

    def ending_with(self, ending: str) -> Sequence[DecisionId]:
        return sorted(DecisionId(key) for key in self._tables.decisions if key.endswith(ending))

    def starting_with(self, prefix: str) -> Sequence[DecisionId]:
        return sorted(DecisionId(key) for key in self._tables.decisions if key.startswith(prefix))

    def depend(self, plan_id: PlanId, dependencies: Collection[Dependency]) -> None:
        for item in dependencies:
            key = (plan_id, item.decision_id, item.depends_on)
            self._tables.dependencies.setdefault(key, item)

    def dependencies(self, plan_id: PlanId) -> Sequence[Dependency]:
        found = sorted(self._tables.dependencies.items())
        return [item for (owner, _, _), item in found if owner == plan_id]

    def dependents(self, decision_id: DecisionId) -> Sequence[Dependency]:
        found = sorted(self._tables.dependencies.items())
        return [item for _, item in found if item.depends_on == decision_id]


class MemoryToolCalls:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, call: ToolCall) -> None:
        assert call.decision_id in self._tables.decisions
        self._tables.tool_calls[call.call_id] = call

    def of_plan(self, plan_id: PlanId) -> Sequence[ToolCall]:
        found = [c for c in self._tables.tool_calls.values() if c.plan_id == plan_id]
        return sorted(found, key=lambda call: call.position.seq)

    def of_decision(self, plan_id: PlanId, decision_id: DecisionId) -> Sequence[ToolCall]:
        return [call for call in self.of_plan(plan_id) if call.decision_id == decision_id]

    def mark_undone(self, plan_id: PlanId, undone: Collection[str]) -> None:
        for call in self.of_plan(plan_id):
            self._tables.tool_calls[call.call_id] = replace(call, undone=call.call_id in undone)


class MemoryTimelines:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, plan_id: PlanId, fork: Fork) -> None:
        assert (plan_id, fork.timeline) not in self._tables.forks
        self._tables.forks[plan_id, fork.timeline] = fork

    def of_plan(self, plan_id: PlanId) -> Sequence[Fork]:
        return [fork for (owner, _), fork in sorted(self._tables.forks.items()) if owner == plan_id]


class MemoryEffects:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def put(self, effect: Effect) -> None:
        assert effect.decision_id in self._tables.decisions
        self._tables.effects[effect.effect_id] = effect

    def remove(self, effect: Effect) -> None:
        self._tables.effects.pop(effect.effect_id, None)

    def get(self, effect_id: EffectId) -> Effect:
        if effect_id not in self._tables.effects:
            raise DatabaseUnusableError("", f"effect {effect_id} is missing")
        return self._tables.effects[effect_id]

    def of_plan(self, plan_id: PlanId) -> Sequence[Effect]:
        found = [e for e in self._tables.effects.values() if e.plan_id == plan_id]
        return sorted(found, key=lambda effect: effect.position.seq)


class MemoryApplied:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def put(self, change: AppliedChange) -> None:
        self._tables.applied[change.plan_id] = change

    def find(self, plan_id: PlanId) -> AppliedChange | None:
        return self._tables.applied.get(plan_id)

    def kept(self) -> Sequence[AppliedChange]:
        return [change for change in self._tables.applied.values() if change.ways]


class MemorySubplans:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, child: ChildPlan) -> None:
        self._tables.children[child.plan_id] = child

    save = add

    def get(self, plan_id: PlanId) -> ChildPlan | None:
        return self._tables.children.get(plan_id)

    def of_parent(self, parent_id: PlanId) -> Sequence[ChildPlan]:
        return [c for c in self._tables.children.values() if c.parent_id == parent_id]

    def below(self, root_id: PlanId) -> Sequence[ChildPlan]:
        return [c for c in self._tables.children.values() if c.root_id == root_id]


class MemoryCorrections:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, correction: Correction) -> None:
        assert correction.correction_id not in self._tables.corrections
        self._tables.corrections[correction.correction_id] = correction

    def save(self, correction: Correction) -> None:
        if correction.correction_id not in self._tables.corrections:
            raise DatabaseUnusableError("", f"correction {correction.correction_id} is missing")
        self._tables.corrections[correction.correction_id] = correction

    def get(self, correction_id: CorrectionId) -> Correction:
        if correction_id not in self._tables.corrections:
            raise CorrectionNotFoundError(correction_id)
        return self._tables.corrections[correction_id]

    def with_part(self, part: str) -> Sequence[Correction]:
        corrections = self._tables.corrections.values()
        return [
            c
            for c in corrections
            if c.correction_id.startswith(part) or c.correction_id.endswith(part)
        ]

    def of_plan(self, plan_id: PlanId) -> Sequence[Correction]:
        found = sorted(self._tables.corrections.values(), key=lambda item: item.correction_id)
        return [item for item in found if item.plan_id == plan_id]

    def supersede(self, plan_id: PlanId, items: Collection[Supersession]) -> None:
        for item in items:
            key = (plan_id, item.correction_id, item.decision_id)
            assert key not in self._tables.supersessions
            self._tables.supersessions[key] = item

    def supersessions(self, plan_id: PlanId) -> Sequence[Supersession]:
        found = [
            item for (owner, _, _), item in self._tables.supersessions.items() if owner == plan_id
        ]
        return sorted(found, key=lambda item: (item.position.seq, item.decision_id))

    def let_stand(self, plan_id: PlanId, items: Collection[Unchecked]) -> None:
        for item in items:
            assert (plan_id, item.decision_id, item.position) not in self._tables.unchecked
            self._tables.unchecked[(plan_id, item.decision_id, item.position)] = item

    def unchecked(self, plan_id: PlanId) -> Sequence[Unchecked]:
        found = [item for (owner, *_), item in self._tables.unchecked.items() if owner == plan_id]
        return sorted(found, key=lambda item: (item.position.seq, item.decision_id))


class MemoryMessages:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, plan_id: PlanId, messages: Collection[Message]) -> None:
        for item in messages:
            self._tables.messages.setdefault((plan_id, item.key), item)

    def chain(self, plan_id: PlanId, head: str) -> Sequence[Message]:
        found: list[Message] = []
        current: str | None = head
        while current is not None and (plan_id, current) in self._tables.messages:
            found.append(self._tables.messages[plan_id, current])
            current = found[-1].parent
        return found[::-1]

    def keep_only(self, plan_id: PlanId, heads: Collection[str]) -> int:
        kept = {item.key for head in heads for item in self.chain(plan_id, head)}
        mine = [key for key in self._tables.messages if key[0] == plan_id and key[1] not in kept]
        for key in mine:
            del self._tables.messages[key]
        return len(mine)
