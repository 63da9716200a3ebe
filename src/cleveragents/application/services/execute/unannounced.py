"""Steps that are seen only by what they have changed: what an actor did without a word."""

from collections.abc import Sequence

from msgspec import Struct

from cleveragents.application.plan_events import tell_recovered
from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.checkpoints.recorded_with import CommitExtras
from cleveragents.application.services.checkpoints.recording import PastStep
from cleveragents.application.services.execute.deciding import Deciding
from cleveragents.application.services.execute.others import seen_in_the_tree
from cleveragents.application.services.execute.run_state import RunState
from cleveragents.application.services.execute.step_source import StepSource
from cleveragents.domain.action import Step, step_number
from cleveragents.domain.actor_protocol import (
    AGENT_TOOL,
    UNANNOUNCED,
    Memory,
    Message,
    Proposal,
    Unannounced,
)
from cleveragents.domain.changes import in_words
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.decision import Decided, Decision, ToolResult
from cleveragents.domain.events import StepFinished, StepStarted
from cleveragents.domain.plan import Plan

_SILENT = "the actor said nothing about it"
_CUT_OFF = "it was cut off; what it had done until then is kept"


class _UnannouncedStep(Struct, frozen=True, kw_only=True):
    """One such step: what was decided, and what the actor knows now that it is done. `is_decided`:
    that it would come is on record already."""

    index: int
    step: Step
    decision: Decision
    memory: Memory
    messages: tuple[Message, ...]
    said: str
    is_decided: bool = False


class UnannouncedSteps:
    def __init__(self, runtime: Runtime, checkpoints: CheckpointService, turns: StepSource) -> None:
        self._runtime = runtime
        self._checkpoints = checkpoints
        self._turns = turns
        self._deciding = Deciding(runtime)

    def note(self, plan: Plan, said: Unannounced, course: RunState) -> Plan:
        """If the sandboxes are not as the last step left them, then that was a step. Otherwise
        the actor may still know more than it did then.

        Decision, call and groups are on record in one transaction: after a kill before that, it
        is undone like every step that was cut off.
        """
        found = self._checkpoints.capture(course.resources)
        if not found.moved:
            return self._remembering(plan, said.memory)
        return self._recorded(plan, self._seen(plan, said, found, course), found, course)

    def note_others(self, plan: Plan, course: RunState) -> Plan:
        """Between two steps that are taken in a user's own tree: what nobody of ours has done. Of a
        program that works by itself, all that changes while it runs is taken for its own."""
        if not course.resources.in_place or plan.action.is_program or plan.head is None:
            return plan
        found = self._checkpoints.capture(course.resources)
        if not found.moved:
            return plan
        index, proposal = plan.last_completed_step + 1, seen_in_the_tree(plan, found, course)
        seen = _UnannouncedStep(
            index=index,
            step=proposal.step,
            decision=self._deciding.of_step(plan, proposal, index, course),
            memory=proposal.memory,
            messages=(),
            said="",
        )
        return self._recorded(plan, seen, found, course)

    def keep(self, plan: Plan, course: RunState) -> Plan:
        """What a program had done when it was cut off: the call that it was about to make, if one
        is on record, or else a step without a word. A check that was cut off is no work of the
        program's: it is not kept."""
        found = self._checkpoints.capture(course.resources)
        pending = course.pending(plan.last_completed_step + 1)
        decided = pending.decided if pending else None
        is_check = decided is not None and not decided.step.tool.startswith(AGENT_TOOL)
        if not found.moved or is_check:
            return plan
        if pending is None or decided is None:
            said = Unannounced(memory=Memory(state=plan.actor_state), said=_CUT_OFF)
            seen = self._seen(plan, said, found, course)
        else:
            seen = self._begun(plan, pending, decided)
        kept = self._recorded(plan, seen, found, course)
        number = step_number(seen.index)
        tell_recovered(
            self._runtime.events, f"what the program had done when it was cut off is step {number}"
        )
        return kept

    def _begun(self, plan: Plan, pending: Decision, decided: Decided) -> _UnannouncedStep:
        index = plan.last_completed_step + 1
        remember = self._turns.remembering(plan, decided.state)
        memory = remember(index, decided.step, ToolResult(output=_CUT_OFF), None)
        return _UnannouncedStep(
            index=index,
            step=decided.step,
            decision=pending,
            memory=memory,
            messages=tuple(memory.added),
            said=_CUT_OFF,
            is_decided=True,
        )

    def _recorded(
        self, plan: Plan, seen: _UnannouncedStep, found: Capture, course: RunState
    ) -> Plan:
        self._runtime.events.emit(
            StepStarted(step_index=seen.index, name=seen.step.name, tool=seen.step.tool)
        )
        past = PastStep(
            plan=plan.advance(seen.index, seen.memory.state),
            before=() if seen.is_decided else self._wanted(plan, seen, _BEFORE),
            after=self._wanted(plan, seen, _AFTER),
            additions=self._additions(plan, seen, course),
        )
        done = self._checkpoints.record_past(plan, course.resources, past, found)
        if not seen.is_decided:
            course.add(seen.decision)
        course.done[seen.index] = seen.decision.decision_id
        course.in_a_row = 0
        self._runtime.events.emit(
            StepFinished(
                step_index=seen.index, name=seen.step.name, files_changed=len(done.changes)
            )
        )
        return done.plan.with_action(course.action_with(done.plan.action, seen.decision))

    def _remembering(self, plan: Plan, memory: Memory) -> Plan:
        """An actor whose memory is not ours to keep has none here."""
        if memory.head is None or memory.state == plan.actor_state:
            return plan
        plan = plan.remembering(memory.state)
        return self._checkpoints.save_progress(plan, CommitExtras(messages=memory.added))

    def _seen(
        self, plan: Plan, said: Unannounced, found: Capture, course: RunState
    ) -> _UnannouncedStep:
        index = plan.last_completed_step + 1
        proposal = Proposal(
            step=Step(name=_name(found), tool=UNANNOUNCED, arguments={}),
            question="What has the actor done without a word?",
            rationale=said.said or _SILENT,
            memory=said.memory,
        )
        remember = self._turns.remembering(plan, said.memory.state)
        memory = remember(index, proposal.step, ToolResult(output=said.said), None)
        return _UnannouncedStep(
            index=index,
            step=proposal.step,
            decision=self._deciding.of_step(plan, proposal, index, course),
            memory=memory,
            messages=(*said.memory.added, *memory.added),
            said=said.said,
        )

    def _additions(self, plan: Plan, seen: _UnannouncedStep, course: RunState) -> CommitExtras:
        decision = seen.decision
        links = () if seen.is_decided else course.known_to(decision, seen.step, plan.action)
        return CommitExtras(
            decision=None if seen.is_decided else decision,
            dependencies=tuple(links),
            tool_call=self._deciding.call_of(decision, seen.step, seen.said),
            writers=course.writers,
            messages=seen.messages,
        )

    def _wanted(
        self, plan: Plan, seen: _UnannouncedStep, labels: Sequence[tuple[Trigger | None, str]]
    ) -> list[CheckpointMoment]:
        """The groups that any step has, as far as they are switched on."""
        if not plan.action.rollback_policy.enabled:
            return []
        return [
            CheckpointMoment(
                reason=CheckpointReason(trigger.value) if trigger else CheckpointReason.DECISION,
                source=seen.step.tool,
                label=label.format(
                    number=step_number(seen.index), name=seen.step.name, tool=seen.step.tool
                ),
                decision_id=seen.decision.decision_id,
                step_index=seen.index,
            )
            for trigger, label in labels
            if trigger is None or self._checkpoints.is_on(trigger)
        ]


_BEFORE = (
    (Trigger.BEFORE_STEP, "before step {number}: {name}"),
    (None, "decision {number}: {name}"),
    (Trigger.ON_TOOL_WRITE, "before {tool} {name}"),
)
_AFTER = (
    (Trigger.ON_TOOL_WRITE_COMPLETE, "after {tool} {name}"),
    (Trigger.AFTER_STEP, "after step {number}: {name}"),
)


def _name(found: Capture) -> str:
    """What changed; where no file did, it was what git knows of them."""
    if found.changes:
        return in_words(found.changes)
    return ", ".join(f"the repository of {resource.name}" for resource in found.moved)
