"""The actor that takes the steps of the action file in their order."""

from collections.abc import Mapping
from typing import Any

from cleveragents.domain.action import Action
from cleveragents.domain.actor_protocol import (
    Finished,
    Memory,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
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
