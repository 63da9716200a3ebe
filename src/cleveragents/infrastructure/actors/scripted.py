"""The actor that takes the steps which a person wrote: those of the action file, in their order.

Also those put into a plan whose actor decides its own, where they come first.
"""

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


class ScriptedActor:
    """Its memory is the number of the step to take next."""

    def strategize(self, situation: Situation) -> Strategy:
        return Strategy(steps=tuple(step.name for step in situation.action.steps))

    def decide(self, situation: Situation) -> Proposal | Finished:
        steps, state = situation.action.steps, situation.state
        wanted = int(state.get("next_step", situation.step_index))
        if wanted >= len(steps):
            return Finished(memory=Memory(state=state))
        return Proposal(
            step=steps[wanted],
            question=f"What is step {wanted + 1} of {len(steps)}?",
            rationale="the action file says so",
            memory=Memory(state={"next_step": wanted + 1}),
            confidence=1.0,
        )

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:  # noqa: ARG002  it only counts
        return Memory(state=state)


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
