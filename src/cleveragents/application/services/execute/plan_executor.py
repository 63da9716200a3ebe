"""Execute: decide, checkpoint, run the tool, commit the step.

What: one turn after the other (`_walk`), until the plan is complete, has failed, or has to wait.
In which order: what a person said since; the next step, from the record or else the actor; whether
its outside effects allow it; its decision with the group before it; the tool; one transaction with
the result, the group after it and the plan past the step.
Why: a decision is on record before its tool writes, so that there is a state to go back to, and a
step counts only together with its snapshot: a kill leaves it done, or to be undone by a resume.
What is not guaranteed: that a step which was cut off did nothing outside. The ledger calls that
uncertain, and a person is asked. Without checkpoints in the policy there are decisions, no groups.
"""

from collections.abc import Sequence
from typing import NoReturn

from msgspec.structs import replace

from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    CommitExtras,
)
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.checkpoints.recording import Committed
from cleveragents.application.services.effects.effect_ledger import EffectLedger, earlier_effects
from cleveragents.application.services.execute.deciding import Deciding
from cleveragents.application.services.execute.run_state import RunState
from cleveragents.application.services.execute.step_source import StepSource
from cleveragents.application.services.execute.tool_runner import (
    EffectGate,
    StepRunner,
    Task,
    ToolRunner,
)
from cleveragents.application.services.execute.unannounced import UnannouncedSteps
from cleveragents.domain.action import Step, step_number
from cleveragents.domain.actor_protocol import (
    FINISHED_AFTER,
    Finished,
    Memory,
    Message,
    Proposal,
    Strategy,
    Unannounced,
)
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.conflicts import UNDECIDED, Resolution
from cleveragents.domain.effects import Effect, EffectChoice, EffectState, EffectVerdict
from cleveragents.domain.errors import (
    EffectDoneError,
    EffectUncertainError,
    PlanError,
    SandboxMissingError,
)
from cleveragents.domain.events import PlanFinished, PlanStarted, Resumed, StepFinished, StepStarted
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan, PlanFailure, State

STEP_OUTDATED = "step-outdated"


class PlanExecutor:
    def __init__(
        self,
        runtime: Runtime,
        checkpoints: CheckpointService,
        tools: ToolRunner,
        children: StepRunner,
        ledger: EffectLedger,
        turns: StepSource,
    ) -> None:
        self._runtime = runtime
        self._checkpoints = checkpoints
        self._tools = tools
        self._children = children
        self._ledger = ledger
        self._turns = turns
        self._deciding = Deciding(runtime)
        self.unannounced = UnannouncedSteps(runtime, checkpoints, turns)

    def execute(
        self,
        plan: Plan,
        resources: HeldResources,
        choice: EffectChoice = EffectChoice.STOP,
        resolution: Resolution = UNDECIDED,
    ) -> Plan:
        """Run every step that is left. The caller holds the lock and has the sandboxes ready.

        Raises EffectUncertainError or EffectDoneError before a step that must not run unasked.
        """
        with self._runtime.unit_of_work.reading() as uow:
            course = RunState.of(uow, plan, resources, resolution)
        if self._ledger.mark_uncertain(course.cut_off(plan.plan_id)):  # nothing of this plan runs
            with self._runtime.unit_of_work.reading() as uow:
                course = RunState.of(uow, plan, resources, resolution)
        try:
            plan = self._walk(self._start(plan, course), course, choice)
        finally:
            self._tools.end(plan.plan_id)
        if plan.child_of is None:  # children share the store of the plan at the top
            self._checkpoints.free_space(plan.plan_id)
        self._runtime.events.emit(PlanFinished(plan=plan.name, state=plan.state))
        return plan

    def _walk(self, plan: Plan, course: RunState, choice: EffectChoice) -> Plan:
        while plan.state is State.PROCESSING:
            plan = self._overrule(plan, course)
            said = self._turns.next(plan, course)
            _let_others_write(plan, course)
            plan = self.unannounced.note_others(plan, course)
            index = plan.last_completed_step + 1
            if isinstance(said, Finished):
                return self._finish(plan, said, course)
            if isinstance(said, Unannounced):
                plan = self.unannounced.note(plan, said, course)
                continue
            if index in course.done:
                plan = self._pass(plan, said, index, course)
                continue
            crossing = self._tools.crossing(plan, said.step, index, choice, course.effects)
            if crossing.passage is EffectVerdict.STOP:
                self._hold(plan, said, index, crossing)
            plan = self._step(plan, said, index, course, crossing)
        return plan

    def _start(self, plan: Plan, course: RunState) -> Plan:
        strategy = self._turns.strategy(plan, course)
        _let_others_write(plan, course)
        self._runtime.events.emit(
            PlanStarted(
                plan=plan.name,
                steps=strategy.steps,
                first_step=plan.last_completed_step + 1,
            )
        )
        if plan.started_at is not None:
            self._runtime.events.emit(
                _resumed(plan, course.first_open(plan.last_completed_step + 1))
            )
        plan = plan.start(self._runtime.clock.now())
        if plan.head is not None:
            return self._adopt(self._checkpoints.save_progress(plan), strategy, course)
        # The root decision came before anything to capture; its group is the way back to the start.
        moment = CheckpointMoment(
            reason=CheckpointReason.DECISION,
            source="plan",
            label="start",
            decision_id=course.root.decision_id,
            step_index=0,
        )
        plan = self._checkpoints.record_decision(plan, course.resources, moment)
        return self._adopt(plan, strategy, course)

    def _adopt(self, plan: Plan, strategy: Strategy, course: RunState) -> Plan:
        """Record how the actor means to go about it, if it has made up its mind about that."""
        if strategy.memory is None:
            return plan
        decision = self._deciding.of_strategy(plan, strategy, course)
        moment = CheckpointMoment(
            reason=CheckpointReason.DECISION,
            source="strategize",
            label="strategy",
            decision_id=decision.decision_id,
            step_index=plan.last_completed_step + 1,
        )
        plan = plan.remembering(strategy.memory.state)
        additions = CommitExtras(decision=decision, messages=strategy.memory.added)
        plan = self._checkpoints.record_decision(plan, course.resources, moment, additions)
        course.add(replace(decision, position=plan.here))
        return plan

    def _overrule(self, plan: Plan, course: RunState) -> Plan:
        """A person has spoken since a step was decided: its actor hears that, and decides anew."""
        pending = self._turns.overruled(plan, course)
        if pending is None:
            return plan
        index = plan.last_completed_step + 1
        memory = self._turns.dropped(plan, pending, course.failed.get(index))
        course.failed.setdefault(index, "")
        plan = plan.advance(index, memory.state)
        return self._checkpoints.save_progress(plan, CommitExtras(messages=memory.added))

    def _finish(self, plan: Plan, said: Finished, course: RunState) -> Plan:
        # First of all: what still runs might write once more, and that would be in no group.
        self._tools.end(plan.plan_id)
        plan = plan.remembering(said.memory.state).complete(self._runtime.clock.now())
        moment = CheckpointMoment(
            reason=CheckpointReason.COMPLETE,
            source="plan",
            label="complete",
            decision_id=course.latest.decision_id,
            step_index=max(plan.last_completed_step, 0),
        )
        additions = CommitExtras(messages=said.memory.added)
        return self._checkpoints.complete(plan, course.resources, moment, additions)

    def accept(self, plan: Plan, resources: HeldResources) -> Plan:
        """What is there is the result: nobody is asked for more steps. The caller holds the lock,
        and no step is half done."""
        with self._runtime.unit_of_work.reading() as uow:
            course = RunState.of(uow, plan, resources)
        told = max((item.seq for item in course.told()), default=0)
        memory = Memory(state={**plan.actor_state, FINISHED_AFTER: told})
        return self._finish(plan.start(self._runtime.clock.now()), Finished(memory=memory), course)

    def fail(self, plan_id: PlanId, failure: PlanFailure) -> Plan:
        """Execute ends for a reason outside its steps; what it has come to is kept if possible."""
        with self._runtime.unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            resources = HeldResources(uow.resources.of_plan(plan_id))
            course = RunState.of(uow, plan, resources)
        failed = plan.refused(replace(failure, checkpoint=plan.head))
        if plan.head is None or failure.code == SandboxMissingError.code:
            return self._checkpoints.save_progress(failed)  # there is nothing to capture
        try:
            return self._on_error(failed, f"error: {failure.code}", course)
        except PlanError:
            # The snapshots may be what is wrong; why the plan has failed must be stored still.
            return self._checkpoints.save_progress(failed)

    def _on_error(self, plan: Plan, label: str, course: RunState) -> Plan:
        self._tools.end(plan.plan_id)
        course.resources.something_runs()
        moment = CheckpointMoment(
            reason=CheckpointReason.ON_ERROR,
            source="plan",
            label=label,
            decision_id=course.latest.decision_id,
            step_index=plan.last_completed_step + 1,
            mid_step=True,
        )
        return self._checkpoints.auto_create_if_configured(
            Trigger.ON_ERROR, plan, course.resources, moment
        ).plan

    def next_step(self, plan: Plan) -> int:
        """The one that a resume would go on with; not one that a correction has left alone."""
        with self._runtime.unit_of_work.reading() as uow:
            return RunState.of(uow, plan).first_open(plan.last_completed_step + 1)

    def effects_ahead(
        self, plan: Plan, first_step: int, choice: EffectChoice
    ) -> Sequence[tuple[int, EffectGate]]:
        """The known steps from there on that have run before, with what would happen to each."""
        with self._runtime.unit_of_work.reading() as uow:
            effects = earlier_effects(uow, plan.plan_id)
        steps = list(enumerate(plan.action.steps))[first_step:]
        found = [(i, self._tools.crossing(plan, step, i, choice, effects)) for i, step in steps]
        return [(index, crossing) for index, crossing in found if crossing.standing is not None]

    def _pass(self, plan: Plan, proposal: Proposal, index: int, course: RunState) -> Plan:
        """Let the result of a step stand that a correction has left alone."""
        with self._runtime.unit_of_work.reading() as uow:
            reason = course.outdated(index, uow.decisions.dependents(course.done[index]))
        if reason is not None:
            failure = _outdated(plan, proposal.step, index, reason, course.done[index])
            plan = plan.fail(failure, self._runtime.clock.now())
            return self._on_error(plan, f"error in {proposal.step.name}", course)
        return self._checkpoints.save_progress(plan.advance(index, proposal.memory.state))

    def _hold(self, plan: Plan, proposal: Proposal, index: int, crossing: EffectGate) -> NoReturn:
        """Wait for a person's word: nothing of this step was begun."""
        assert crossing.standing is not None
        sure = crossing.standing.state is EffectState.DONE
        kind = EffectDoneError if sure else EffectUncertainError
        name = f"{step_number(index)} ({proposal.step.tool})"
        error = kind(plan.plan_id, name, crossing.standing.effects)
        failure = replace(
            PlanFailure.of(error), tool=proposal.step.tool, step=index, checkpoint=plan.head
        )
        plan = self._checkpoints.save_progress(plan.hold(failure))
        self._runtime.events.emit(PlanFinished(plan=plan.name, state=plan.state))
        raise error

    def _step(
        self,
        plan: Plan,
        proposal: Proposal,
        index: int,
        course: RunState,
        crossing: EffectGate,
    ) -> Plan:
        step = proposal.step
        self._runtime.events.emit(StepStarted(step_index=index, name=step.name, tool=step.tool))
        plan = self._at_step(Trigger.BEFORE_STEP, plan, proposal, index, course)
        # A step that was decided before an interruption is carried out, not decided again.
        pending = course.pending(index)
        task = Task(
            step=step,
            step_index=index,
            decision=pending or self._deciding.of_step(plan, proposal, index, course),
            remember=self._turns.remembering(plan, proposal.memory.state),
            recovers=self._turns.recovers(plan, course.in_a_row),
            resources=course.resources,
            skip=_skipping(crossing),
            choice=crossing.choice,
            resolution=course.resolution,
            writers=course.writers,
        )
        if pending is None:
            plan, task = self._record(plan, task, course, proposal.memory.added)
        runner = self._tools if step.subplans is None else self._children
        done = runner.run(plan, task)
        _note(course, task, done)
        plan = done.plan
        if not done.failed and plan.state is State.PROCESSING:
            plan = self._at_step(Trigger.AFTER_STEP, plan, proposal, index, course)
        self._runtime.events.emit(
            StepFinished(
                step_index=index,
                name=step.name,
                files_changed=len(done.changes),
                error=plan.error.message if plan.error else done.notice,
            )
        )
        return plan

    def _record(
        self, plan: Plan, task: Task, course: RunState, messages: tuple[Message, ...]
    ) -> tuple[Plan, Task]:
        label = f"decision {step_number(task.step_index)}: {task.step.name}"
        moment = task.moment(CheckpointReason.DECISION, label)
        known = course.known_to(task.decision, task.step, plan.action)
        additions = CommitExtras(
            decision=task.decision, dependencies=tuple(known), messages=messages
        )
        is_prepared = task.step.subplans is None and self._tools.writes_at_once(plan, task)
        before_write = task.before_write() if is_prepared else None
        plan = self._checkpoints.record_decision(
            plan, course.resources, moment, additions, before_write
        )
        course.add(task.decision)
        plan = plan.with_action(course.action_with(plan.action, task.decision))
        return plan, replace(task, is_prepared=is_prepared)

    def _at_step(
        self,
        trigger: Trigger,
        plan: Plan,
        proposal: Proposal,
        index: int,
        course: RunState,
    ) -> Plan:
        if not self._checkpoints.is_on(trigger):
            return plan
        moment = CheckpointMoment(
            reason=CheckpointReason(trigger.value),
            source=proposal.step.tool,
            label=f"{trigger.value.replace('_', ' ')} {step_number(index)}: {proposal.step.name}",
            decision_id=course.latest.decision_id,
            step_index=index,
        )
        return self._checkpoints.auto_create_if_configured(
            trigger, plan, course.resources, moment
        ).plan


def _note(course: RunState, task: Task, done: Committed) -> None:
    """What has become of a step; a plan that has failed by it goes no further."""
    if done.failed:
        course.failed[task.step_index] = done.notice or ""
        course.in_a_row += 1
    elif done.plan.state is State.PROCESSING:
        course.done[task.step_index] = task.decision.decision_id
        course.in_a_row = 0


def _let_others_write(plan: Plan, course: RunState) -> None:
    """Between two steps somebody may write who is not waited for: an actor that thinks for long and
    runs programs of its own, or a server that is kept. Steps that are written down come at once."""
    if plan.action.decides or plan.action.servers:
        course.resources.something_runs()


def _skipping(crossing: EffectGate) -> Effect | None:
    return crossing.standing if crossing.passage is EffectVerdict.SKIP else None


def _resumed(plan: Plan, following: int) -> Resumed:
    steps = plan.action.steps
    name = steps[following].name if following < len(steps) else ""
    return Resumed(step_index=following, steps=len(steps), name=name)


def _outdated(
    plan: Plan, step: Step, index: int, reason: str, decision_id: DecisionId
) -> PlanFailure:
    return PlanFailure(
        message=f"step {step_number(index)} ({step.name}) was done before an earlier step ran"
        f" again, and {reason}",
        hint="do both in their order: agents plan correct --mode revert --guidance"
        f" 'in order' {decision_id}",
        code=STEP_OUTDATED,
        tool=step.tool,
        step=index,
        checkpoint=plan.head,
    )
