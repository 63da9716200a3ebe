"""The actor that takes the steps which a person wrote: those of the action file, in their order.

Also those put into a plan whose actor decides its own, where they come first; and those of a file
that is used on a timeline in place, between whose steps others have theirs.
And the end of Execute: an actor that has finished stays so, and the validations follow.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cleveragents.application.ports.actors import Actor
from cleveragents.domain.action import Action, Step, Validation
from cleveragents.domain.actor_protocol import (
    FINISHED_AFTER,
    Finished,
    Memory,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
    Unannounced,
)
from cleveragents.domain.timeline_use import NEXT, USE, own_state

_DONE = "validations_done"


class ScriptedActor:
    """Its memory is the number of the step to take next."""

    def strategize(self, situation: Situation) -> Strategy:
        return Strategy(steps=tuple(step.name for step in situation.action.steps))

    def decide(self, situation: Situation) -> Proposal | Finished:
        steps, state = situation.action.steps, situation.state
        wanted = int(state.get(NEXT, situation.step_index))
        if wanted >= len(steps):
            return Finished(memory=Memory(state=state))
        return Proposal(
            step=steps[wanted],
            question=f"What is step {wanted + 1} of {len(steps)}?",
            rationale="the action file says so",
            memory=Memory(state={NEXT: wanted + 1}),
            confidence=1.0,
        )

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:  # noqa: ARG002  it only counts
        return Memory(state=state)


class TimelineSteps:
    """Those of a file on a timeline in place, which have no numbers there beforehand."""

    def strategize(self, situation: Situation) -> Strategy:
        return Strategy(steps=tuple(step.name for step in _script(situation)))

    def decide(self, situation: Situation) -> Proposal | Finished:
        steps, state = _script(situation), situation.state
        wanted = int(state.get(NEXT, 0))
        if wanted >= len(steps):
            return Finished(memory=Memory(state=state))
        return Proposal(
            step=steps[wanted],
            question=f"What is step {wanted + 1} of {len(steps)} of the file?",
            rationale="the action file says so",
            memory=Memory(state={NEXT: wanted + 1}),
            confidence=1.0,
        )

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:  # noqa: ARG002  it only counts
        return Memory(state=state)


class OneUse:
    """What an actor remembers says of which use of a file it is. A rollback may lead into another
    one, whose memory is not its own: then it begins anew."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def strategize(self, situation: Situation) -> Strategy:
        said = self._actor.strategize(_own(situation))
        if said.memory is None:
            return said
        return replace(said, memory=_marked(said.memory, situation.action))

    def decide(self, situation: Situation) -> Proposal | Unannounced | Finished:
        said = self._actor.decide(_own(situation))
        return replace(said, memory=_marked(said.memory, situation.action))

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:
        return _marked(self._actor.observe(action, own_state(action, state), outcome), action)


def _script(situation: Situation) -> Sequence[Step]:
    use = situation.action.use
    return use.script if use else ()


def _own(situation: Situation) -> Situation:
    return replace(situation, state=own_state(situation.action, situation.state))


def _marked(memory: Memory, action: Action) -> Memory:
    assert action.use is not None
    return replace(memory, state={**memory.state, USE: action.use.use_id})


class GivenSteps:
    """The actor hears what came of them, as of its own."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def strategize(self, situation: Situation) -> Strategy:
        return self._actor.strategize(situation)

    def decide(self, situation: Situation) -> Proposal | Unannounced | Finished:
        index, steps = situation.step_index, situation.action.steps
        if index >= len(steps):
            return self._actor.decide(situation)
        return Proposal(
            step=steps[index],
            question="What did a person put here?",
            rationale="a person said so",
            memory=Memory(state=situation.state),
            confidence=1.0,
        )

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:
        return self._actor.observe(action, state, outcome)


class ValidatingActor:
    """Remembers in the actor's state how many of the action's validations have run, and what people
    had said when it finished; a rollback takes that back with everything else. So validations run
    again after any change, and a plan that comes back to its end is complete without asking
    anybody. An actor that decides its own steps goes on if a person says or adds something."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def strategize(self, situation: Situation) -> Strategy:
        strategy = self._actor.strategize(situation)
        judged = (step.name for step in situation.action.validations)
        return Strategy(
            steps=(*strategy.steps, *judged), chosen=strategy.chosen, memory=strategy.memory
        )

    def decide(self, situation: Situation) -> Proposal | Unannounced | Finished:
        situation = _listening(situation)
        action = situation.action
        done = int(situation.state.get(_DONE, 0))
        said = self._said(situation)
        if not isinstance(said, Finished) or done >= len(action.validations):
            return said
        step = action.validations[done]
        memory = said.memory
        return Proposal(
            step=step,
            question=f"Does the result pass {step.name}?",
            rationale=f"the action says that it is {action.validation(step.tool)}",
            memory=Memory(state={**memory.state, _DONE: done + 1}, added=memory.added),
            confidence=1.0,
        )

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:
        """An actor hears only of those that it has to do something about."""
        if _DONE not in state:
            return self._actor.observe(action, state, outcome)
        required = action.validation(outcome.step.tool) is Validation.REQUIRED
        if outcome.error is None or not required:
            return Memory(state=state)
        # The work goes on, so that all of them have to run again after it.
        return self._actor.observe(action, _working(state), outcome)

    def _said(self, situation: Situation) -> Proposal | Unannounced | Finished:
        state = situation.state
        if FINISHED_AFTER in state or _DONE in state:
            return Finished(memory=Memory(state=state))
        said = self._actor.decide(situation)
        if not isinstance(said, Finished) or not situation.action.decides:
            return said
        known = {**said.memory.state, FINISHED_AFTER: _latest(situation)}
        return replace(said, memory=Memory(state=known, added=said.memory.added))


def _listening(situation: Situation) -> Situation:
    if not situation.action.decides:
        return situation
    is_told = _latest(situation) > situation.state.get(FINISHED_AFTER, 0)
    is_given = situation.step_index < len(situation.action.steps)
    if not is_told and not is_given:
        return situation
    return replace(situation, state=_working(situation.state))


def _working(state: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in state.items() if key not in (_DONE, FINISHED_AFTER)}


def _latest(situation: Situation) -> int:
    return max((item.seq for item in situation.guidance), default=0)
