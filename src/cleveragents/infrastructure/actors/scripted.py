"""Owns the actor that takes the steps of the action file in their order."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.application.ports import Proposal
from cleveragents.domain.action import Action


class ScriptedActor:
    """Its memory is the number of the step to take next."""

    def outline(self, action: Action) -> Sequence[str]:
        return [step.name for step in action.steps]

    def decide(
        self, action: Action, step_index: int, actor_state: Mapping[str, Any]
    ) -> Proposal | None:
        wanted = int(actor_state.get("next_step", step_index))
        if wanted >= len(action.steps):
            return None
        step = action.steps[wanted]
        return Proposal(
            step=step,
            question=f"What is step {wanted + 1} of {len(action.steps)}?",
            rationale="the action file says so",
            actor_state={"next_step": wanted + 1},
            confidence=1.0,
        )
