"""The steps that a person put into a plan whose actor decides its own: they come first."""

from collections.abc import Mapping
from typing import Any

from cleveragents.application.ports.actors import Actor
from cleveragents.domain.action import Action
from cleveragents.domain.actor_protocol import (
    Finished,
    Memory,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
    Unannounced,
)


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
