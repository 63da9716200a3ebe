"""Owns the validations at the end of Execute: they follow the last step of any other actor."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cleveragents.application.actor_ports import Actor
from cleveragents.domain.acting import Finished, Memory, Outcome, Proposal, Situation, Strategy
from cleveragents.domain.action import Action, Validation

_DONE = "validations_done"
_TOLD = "validated_after"


class ValidatingActor:
    """Remembers in the actor's state how many of the action's validations have run; a rollback
    takes that back with everything else, so that they run again after any change. An actor that
    decides its own steps goes on with its work if a person says something after that."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def strategize(self, situation: Situation) -> Strategy:
        strategy = self._actor.strategize(situation)
        judged = (step.name for step in situation.action.validations)
        return Strategy(
            steps=(*strategy.steps, *judged), chosen=strategy.chosen, memory=strategy.memory
        )

    def decide(self, situation: Situation) -> Proposal | Finished:
        situation = _listening(situation)
        action, state = situation.action, situation.state
        done = int(state.get(_DONE, 0))
        said = Finished(memory=Memory(state=state)) if done else self._actor.decide(situation)
        if isinstance(said, Proposal) or done >= len(action.validations):
            return said
        step = action.validations[done]
        memory = said.memory
        progress = {_DONE: done + 1, **({_TOLD: _latest(situation)} if action.decides else {})}
        return Proposal(
            step=step,
            question=f"Does the result pass {step.name}?",
            rationale=f"the action says that it is {action.validation(step.tool)}",
            memory=Memory(state={**memory.state, **progress}, added=memory.added),
            confidence=1.0,
        )

    def hear(self, action: Action, state: Mapping[str, Any], outcome: Outcome) -> Memory:
        """An actor hears only of those that it has to do something about."""
        if _DONE not in state:
            return self._actor.hear(action, state, outcome)
        required = action.validation(outcome.step.tool) is Validation.REQUIRED
        if outcome.error is None or not required:
            return Memory(state=state)
        # The work goes on, so that all of them have to run again after it.
        return self._actor.hear(action, _working(state), outcome)


def _listening(situation: Situation) -> Situation:
    if not situation.action.decides or _latest(situation) <= situation.state.get(_TOLD, 0):
        return situation
    return replace(situation, state=_working(situation.state))


def _working(state: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in state.items() if key not in (_DONE, _TOLD)}


def _latest(situation: Situation) -> int:
    return max((item.seq for item in situation.guidance), default=0)
