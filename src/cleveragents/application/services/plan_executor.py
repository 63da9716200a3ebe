"""Owns Execute: decide, checkpoint, run the tool, commit the step."""

from collections.abc import Sequence
from typing import NoReturn

from cleveragents.application.ports import (
    Actor,
    Clock,
    EventSink,
    IdSource,
    Proposal,
    UnitOfWorkFactory,
)
from cleveragents.application.services.checkpoint_service import CheckpointService
from cleveragents.application.services.tool_runner import Crossing, StepRunner, Task
from cleveragents.domain.action import Action, Step
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.decision import Decision, DecisionType
from cleveragents.domain.effects import Effect, EffectChoice, EffectState, Passage
from cleveragents.domain.errors import EffectDoneError, EffectUncertainError
from cleveragents.domain.events import (
    PlanFinished,
    PlanStarted,
    Resumed,
    StepFinished,
    StepStarted,
)
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan, PlanFailure, State


class PlanExecutor:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        checkpoints: CheckpointService,
        runner: StepRunner,
        actor: Actor,
        chronicle: tuple[Clock, IdSource],
        events: EventSink,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._checkpoints = checkpoints
        self._runner = runner
        self._actor = actor
        self._clock, self._ids = chronicle
        self._events = events

    def execute(self, plan: Plan, choice: EffectChoice = EffectChoice.STOP) -> Plan:
        """Run every step that is left. The caller holds the lock and has the sandboxes ready.

        Raises EffectUncertainError or EffectDoneError before a step that must not run unasked.
        """
        with self._unit_of_work.reading() as uow:
            decisions = uow.decisions.of_plan(plan.plan_id)
        live = [decision for decision in decisions if not decision.superseded]
        plan = self._start(plan, live)
        while plan.state is State.PROCESSING:
            index = plan.last_completed_step + 1
            proposal = self._actor.decide(plan.action, index, plan.actor_state)
            if proposal is None:
                plan = self._checkpoints.save_progress(plan.complete(self._clock.now()))
                break
            crossing = self._runner.crossing(plan, proposal.step, index, choice)
            if crossing.passage is Passage.STOP:
                self._hold(plan, proposal, index, crossing)
            plan = self._step(plan, proposal, index, live, crossing)
        if plan.child_of is None:  # children share the store of the plan at the top
            self._checkpoints.free_space(plan.plan_id)
        self._events.emit(PlanFinished(plan_id=plan.plan_id, state=plan.state))
        return plan

    def _start(self, plan: Plan, live: Sequence[Decision]) -> Plan:
        self._events.emit(
            PlanStarted(
                plan_id=plan.plan_id,
                steps=tuple(self._actor.outline(plan.action)),
                first_step=plan.last_completed_step + 1,
            )
        )
        if plan.started_at is not None:
            self._events.emit(_resumed(plan))
        plan = plan.start(self._clock.now())
        if plan.head is not None:
            return self._checkpoints.save_progress(plan)
        # The root decision was made before there was anything to capture; its group is the
        # point from which everything else can be taken back.
        moment = CheckpointMoment(
            reason=CheckpointReason.DECISION,
            source="plan",
            label="start",
            decision_id=live[0].decision_id,
            step_index=0,
        )
        return self._checkpoints.record_decision(plan, moment)

    def settle(self, plan_id: PlanId) -> Sequence[Effect]:
        """Effects whose end is not known are uncertain from now on; gives back those found."""
        return self._runner.settle(plan_id)

    def effects_ahead(
        self, plan: Plan, first_step: int, choice: EffectChoice
    ) -> Sequence[tuple[int, Crossing]]:
        """The known steps from there on that have run before, with what would happen to each."""
        steps = list(enumerate(plan.action.steps))[first_step:]
        found = [(i, self._runner.crossing(plan, step, i, choice)) for i, step in steps]
        return [(index, crossing) for index, crossing in found if crossing.standing is not None]

    def _hold(self, plan: Plan, proposal: Proposal, index: int, crossing: Crossing) -> NoReturn:
        """Wait for a person's word: nothing of this step was begun."""
        assert crossing.standing is not None
        sure = crossing.standing.state is EffectState.DONE
        kind = EffectDoneError if sure else EffectUncertainError
        name = f"{index} ({proposal.step.tool})"
        error = kind(plan.plan_id, name, crossing.standing.effects)
        failure = PlanFailure(
            message=error.message,
            hint=error.hint,
            code=error.code,
            tool=proposal.step.tool,
            step=index,
            checkpoint=plan.head,
        )
        plan = self._checkpoints.save_progress(plan.hold(failure))
        self._events.emit(PlanFinished(plan_id=plan.plan_id, state=plan.state))
        raise error

    def _step(
        self,
        plan: Plan,
        proposal: Proposal,
        index: int,
        live: list[Decision],
        crossing: Crossing,
    ) -> Plan:
        step = proposal.step
        self._events.emit(StepStarted(step_index=index, name=step.name, tool=step.tool))
        plan = self._at_step(Trigger.BEFORE_STEP, plan, proposal, index, live)
        plan, decision = self._decide(plan, proposal, index, live)
        task = Task(
            step=step,
            step_index=index,
            decision=decision,
            next_actor_state=proposal.actor_state,
            resources=self._checkpoints.sandboxes(plan.plan_id),
            skip=_skipping(crossing),
            choice=crossing.choice,
        )
        done = self._runner.run(plan, task)
        plan = done.plan
        if plan.state is State.PROCESSING:
            plan = self._at_step(Trigger.AFTER_STEP, plan, proposal, index, live)
        self._events.emit(
            StepFinished(
                step_index=index,
                name=step.name,
                files_changed=len(done.changes),
                error=plan.error.message if plan.error else done.notice,
            )
        )
        return plan

    def _decide(
        self, plan: Plan, proposal: Proposal, index: int, live: list[Decision]
    ) -> tuple[Plan, Decision]:
        # A step that was decided before an interruption is carried out, not decided again.
        pending = [decision for decision in live if decision.step_index == index]
        if pending:
            return plan, pending[-1]
        decision = Decision(
            decision_id=DecisionId(self._ids.new()),
            plan_id=plan.plan_id,
            parent_id=live[0].decision_id,
            position=plan.here,
            type=_decision_type(plan.action, proposal.step),
            question=proposal.question,
            chosen=f"{proposal.step.tool}: {proposal.step.name}",
            alternatives=proposal.alternatives,
            rationale=proposal.rationale,
            confidence=proposal.confidence,
            context={"tool": proposal.step.tool, "actor_state": dict(plan.actor_state)},
            phase=plan.phase,
            step_index=index,
            attempt=plan.attempt,
            created_at=self._clock.now(),
        )
        moment = CheckpointMoment(
            reason=CheckpointReason.DECISION,
            source=proposal.step.tool,
            label=f"decision {index}: {proposal.step.name}",
            decision_id=decision.decision_id,
            step_index=index,
        )
        plan = self._checkpoints.record_decision(plan, moment, decision)
        live.append(decision)
        return plan, decision

    def _at_step(
        self,
        trigger: Trigger,
        plan: Plan,
        proposal: Proposal,
        index: int,
        live: Sequence[Decision],
    ) -> Plan:
        if not self._checkpoints.is_on(trigger):
            return plan
        moment = CheckpointMoment(
            reason=CheckpointReason(trigger.value),
            source=proposal.step.tool,
            label=f"{trigger.value.replace('_', ' ')} {index}: {proposal.step.name}",
            decision_id=live[-1].decision_id,
            step_index=index,
        )
        return self._checkpoints.auto_create_if_configured(trigger, plan, moment).plan


def _skipping(crossing: Crossing) -> Effect | None:
    return crossing.standing if crossing.passage is Passage.SKIP else None


def _decision_type(action: Action, step: Step) -> DecisionType:
    if action.validation(step.tool) is not None:
        return DecisionType.VALIDATION_RESPONSE
    if step.subplans is None:
        return DecisionType.TOOL_INVOCATION
    parallel = step.subplans.parallel
    return DecisionType.SUBPLAN_PARALLEL_SPAWN if parallel else DecisionType.SUBPLAN_SPAWN


def _resumed(plan: Plan) -> Resumed:
    following, steps = plan.last_completed_step + 1, plan.action.steps
    name = steps[following].name if following < len(steps) else ""
    return Resumed(step_index=following, steps=len(steps), name=name)
