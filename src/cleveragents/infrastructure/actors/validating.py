"""The end of Execute: an actor that has finished stays so, and the validations follow."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from cleveragents.application.ports.actors import Actor
from cleveragents.domain.action import Action, Validation
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

_DONE = "validations_done"


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
