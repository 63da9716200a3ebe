"""What is known of a run so far: live decisions, steps that are done, who wrote what."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.domain.action import Action, Step
from cleveragents.domain.actor_protocol import UNANNOUNCED, Guidance, PlacedStep, grown
from cleveragents.domain.conflicts import UNDECIDED, Resolution
from cleveragents.domain.correction import (
    Correction,
    CorrectionMode,
    CorrectionStatus,
    unchecked_decisions,
)
from cleveragents.domain.decision import (
    Decision,
    DecisionType,
    Dependency,
    ToolCall,
    ToolCallStatus,
    lineage,
)
from cleveragents.domain.effects import Effect, EffectState
from cleveragents.domain.footprint import Footprint, StepWrites, Touched, Writers
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.in_place import OTHERS
from cleveragents.domain.plan import Plan
from cleveragents.domain.subplan import ChildPlan, MergeOutcome, current
from cleveragents.domain.timeline import step_name

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork


class RunState(Struct):
    """`done` has, for each step that need not run again, the decision that carried it out.

    `failed` has the last error of each step that was not done; `in_a_row` is how many have failed
    one after the other since this run began. `unchecked` are those of the done ones that a person
    let stand, with the reason.
    `resolution` is what somebody has decided about conflicts of child plans. `effects` are what
    steps had done outside before this run: none of its own steps is come to twice.
    """

    decisions: list[Decision]
    done: dict[int, DecisionId] = field(default_factory=dict[int, DecisionId])
    failed: dict[int, str] = field(default_factory=dict[int, str])
    in_a_row: int = 0
    writers: Writers = field(default_factory=Writers)
    corrections: Sequence[Correction] = ()
    unchecked: Mapping[DecisionId, str] = field(default_factory=dict[DecisionId, str])
    resolution: Resolution = UNDECIDED
    resources: HeldResources = field(default_factory=lambda: HeldResources(()))
    effects: Mapping[int, Sequence[Effect]] = field(default_factory=dict[int, Sequence[Effect]])
    # Looked up at every step: going through all decisions each time would make long plans slow.
    _of_steps: dict[int, Decision] = field(default_factory=dict[int, Decision])
    _numbers: dict[DecisionId, int | None] = field(default_factory=dict[DecisionId, int | None])
    _named: tuple[Sequence[Step], Mapping[str, int]] = ((), {})
    _advice: list[Decision] = field(default_factory=list[Decision])
    _seen_only: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        for decision in self.decisions:
            self._index(decision)

    @classmethod
    def of(
        cls,
        uow: "UnitOfWork",
        plan: Plan,
        resources: HeldResources | None = None,
        resolution: Resolution = UNDECIDED,
    ) -> "RunState":
        """Without resources for whoever only looks."""
        from cleveragents.application.services.effects.effect_ledger import (  # noqa: PLC0415
            earlier_effects,  # who only asks what is done has no run to begin
        )

        live = [item for item in uow.decisions.of_plan(plan.plan_id) if not item.superseded]
        every = uow.tool_calls.of_plan(plan.plan_id)
        calls = successes(every)
        known = {item.decision_id for item in live}
        return cls(
            decisions=live,
            done=done_steps(uow, plan, calls),
            failed=failed_steps(every),
            writers=Writers(call.deed for call in calls),
            corrections=[
                item
                for item in uow.corrections.of_plan(plan.plan_id)
                if item.status is CorrectionStatus.DONE and item.intervention_id in known
            ],
            unchecked=unchecked_of(uow, plan),
            resolution=resolution,
            resources=resources or HeldResources(()),
            effects=earlier_effects(uow, plan.plan_id),
        )

    def cut_off(self, plan_id: PlanId) -> Sequence[Effect]:
        """The plan's own effects of which only the beginning is on record."""
        every = (effect for effects in self.effects.values() for effect in effects)
        return [e for e in every if e.plan_id == plan_id and e.state is EffectState.STARTED]

    @property
    def root(self) -> Decision:
        return self.decisions[0]

    @property
    def latest(self) -> Decision:
        return self.decisions[-1]

    def add(self, decision: Decision) -> None:
        self.decisions.append(decision)
        self._index(decision)

    def _index(self, decision: Decision) -> None:
        self._numbers[decision.decision_id] = decision.step_index
        if decision.type is DecisionType.USER_INTERVENTION:
            self._advice.append(decision)
        elif decision.step_index is not None:
            self._of_steps[decision.step_index] = decision
            decided = decision.decided
            if decided is not None and decided.step.tool in (UNANNOUNCED, OTHERS):
                self._seen_only.add(decision.step_index)

    def seen_only(self, first: int) -> int:
        """How many steps from there on were seen only by what they had changed."""
        return sum(1 for index in self._seen_only if index >= first)

    def first_open(self, index: int) -> int:
        """The first step from there on that is still to be done."""
        while index in self.done:
            index += 1
        return index

    def pending(self, index: int) -> Decision | None:
        """The step's decision, if it was made before and is still to be carried out."""
        return self._of_steps.get(index)

    def left_by(self, plan: Plan) -> str | None:
        """What the step is called that may have left in a user's own tree what no group has: one
        that did not come to its end, or a check. None if it was nobody of ours."""
        if plan.action.is_program:
            return None  # what its calls have left are steps of their own
        here = self._of_steps.get(plan.last_completed_step + 1) if plan.mid_step else None
        last = self._of_steps.get(plan.last_completed_step)
        if here is None and last is not None:
            judged = last.type is DecisionType.VALIDATION_RESPONSE
            here = last if judged or plan.last_completed_step in self.failed else None
        return None if here is None else step_name(here)

    def parent_of(self, index: int) -> DecisionId:
        """A step that is done again because of a correction belongs to that correction."""
        for correction in reversed(self.corrections):
            if index in correction.steps and correction.intervention_id is not None:
                return correction.intervention_id
        return self.root.decision_id

    def guidance(self, index: int) -> list[str]:
        """What people have said about this step, oldest first."""
        steps = {item.intervention_id: item.steps for item in self.corrections}
        return [
            decision.chosen
            for decision in self._advice
            if index in steps.get(decision.decision_id, (index,))
        ]

    def told(self) -> list[Guidance]:
        """What people have said that an actor is to hear, oldest first.

        Not what they added: that is a child plan of its own, of which the actor hears the result.
        """
        added = {
            item.intervention_id for item in self.corrections if item.mode is CorrectionMode.APPEND
        }
        return [
            Guidance(text=decision.chosen, seq=decision.position.seq)
            for decision in self._advice
            if decision.decision_id not in added
        ]

    def action_with(self, action: Action, decision: Decision) -> Action:
        """The action once this decision is made, whose step may be a new one."""
        placed = _placed([decision])
        if not placed or placed[0].judges:
            return action
        # Validations lie between, which have to be looked up.
        gap = placed[0].index > len(action.steps)
        return grown(action, _placed(self.decisions) if gap else placed)

    def known_to(self, decision: Decision, step: Step, action: Action) -> list[Dependency]:
        """What a decision builds on: what its step `uses`, and all that its actor remembers."""
        found = self.declared(decision.decision_id, step, action)
        return [*found, *links_to(action, decision.decision_id, self.latest)]

    def declared(self, decision_id: DecisionId, step: Step, action: Action) -> list[Dependency]:
        """What the step's `uses` comes to."""
        if not step.uses:
            return []  # most steps; looking all others up would make long plans slow
        if self._named[0] is not action.steps:
            numbers = {other.name: index for index, other in enumerate(action.steps)}
            self._named = (action.steps, numbers)
        sources = [(name, self.done.get(self._named[1].get(name, -1))) for name in step.uses]
        return [
            Dependency(decision_id=decision_id, depends_on=source, why=f"uses {name!r}")
            for name, source in sources
            if source is not None
        ]

    def outdated(self, index: int, dependents: Iterable[Dependency]) -> str | None:
        """Why a step that was done cannot stay: one before it ran later, on top of what it did, or
        changed what it had used."""
        mine = self.done[index]
        for item in dependents:
            number = self._numbers.get(item.decision_id)
            if number is not None and number < index:
                return f"that one {item.why}"
        why = self.writers.overtaken(mine, unproven=mine not in self.unchecked)
        return None if why is None else f"it {why}"


def links_to(action: Action, decision_id: DecisionId, latest: Decision) -> tuple[Dependency, ...]:
    """An actor that decides its own steps remembers all that came before: if an earlier decision
    goes, so does each that was made with it in mind. One link to the latest reaches them all."""
    if not action.decides or latest.parent_id is None:
        return ()
    why = "was decided with this in mind"
    return (Dependency(decision_id=decision_id, depends_on=latest.decision_id, why=why),)


def _placed(decisions: Iterable[Decision]) -> list[PlacedStep]:
    return [
        PlacedStep(
            index=decision.step_index,
            step=decision.decided.step,
            judges=decision.type is DecisionType.VALIDATION_RESPONSE,
        )
        for decision in decisions
        if decision.decided is not None and decision.step_index is not None
    ]


def done_steps(uow: "UnitOfWork", plan: Plan, calls: Iterable[ToolCall]) -> dict[int, DecisionId]:
    """By step, the live decision that carried it out to its end; `calls` are those of the plan."""
    children = uow.subplans.of_parent(plan.plan_id)
    return {
        call.step_index: call.decision_id
        for call in successes(calls)
        if not _spawned_less(plan, call, children)
    }


def _spawned_less(plan: Plan, call: ToolCall, children: Sequence[ChildPlan]) -> bool:
    """A step that spawns has a call for each child; it is done when all of them are merged."""
    subplans = plan.action.steps[call.step_index].subplans if _is_known(plan, call) else None
    if subplans is None:
        return False
    found = current(children, call.decision_id)
    merged = {name for name, child in found.items() if child.outcome is MergeOutcome.MERGED}
    return not merged.issuperset(child.name for child in subplans.plans)


def _is_known(plan: Plan, call: ToolCall) -> bool:
    return call.step_index < len(plan.action.steps)


def unchecked_of(uow: "UnitOfWork", plan: Plan) -> Mapping[DecisionId, str]:
    """Decisions whose result a person let stand, with the reason."""
    marks = uow.corrections.unchecked(plan.plan_id)
    if not marks:
        return {}  # nearly always; the rest would make long plans slow
    reach = lineage(plan.timeline, uow.timelines.of_plan(plan.plan_id))
    return unchecked_decisions(marks, uow.tool_calls.of_plan(plan.plan_id), reach)


def failed_steps(calls: Iterable[ToolCall]) -> dict[int, str]:
    """By step, the error of its last call, if that failed and was not taken back."""
    last = {call.step_index: call for call in calls if not call.undone}
    return {index: call.error for index, call in last.items() if call.error is not None}


def successes(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Those whose effects count."""
    return [c for c in calls if c.status is ToolCallStatus.SUCCEEDED and not c.undone]


def deeds_of(calls: Sequence[ToolCall]) -> Mapping[DecisionId, StepWrites]:
    """A step that spawned children has a call for each of them."""
    deeds: dict[DecisionId, StepWrites] = {}
    for call in calls:
        known, deed = deeds.get(call.decision_id), call.deed
        if known is not None:
            touched = _joined(known.touched, deed.touched)
            deed = replace(deed, touched=touched, reach=known.reach.joined(deed.reach))
        deeds[call.decision_id] = deed
    return deeds


def _joined(one: Touched, two: Touched) -> Touched:
    names = {*one, *two}
    return {name: _both(one.get(name), two.get(name)) for name in names}


def _both(one: Footprint | None, two: Footprint | None) -> Footprint:
    if one is None or two is None:
        return one or two or Footprint()
    return Footprint(
        paths=one.paths | two.paths,
        folders=one.folders | two.folders,
        whole=one.whole or two.whole,
    )
