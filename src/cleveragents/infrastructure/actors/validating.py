"""Owns the validations at the end of Execute: they follow the last step of any other actor."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.application.ports import Actor, Proposal
from cleveragents.domain.action import Action

_DONE = "validations_done"


class ValidatingActor:
    """Remembers in the actor's state how many of the action's validations have run; a rollback
    takes that back with everything else, so that they run again after any change."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def outline(self, action: Action) -> Sequence[str]:
        return [*self._actor.outline(action), *(step.name for step in action.validations)]

    def decide(
        self, action: Action, step_index: int, actor_state: Mapping[str, Any]
    ) -> Proposal | None:
        done = int(actor_state.get(_DONE, 0))
        proposal = None if done else self._actor.decide(action, step_index, actor_state)
        if proposal is not None or done >= len(action.validations):
            return proposal
        step = action.validations[done]
        return Proposal(
            step=step,
            question=f"Does the result pass {step.name}?",
            rationale=f"the action says that it is {action.validation(step.tool)}",
            actor_state={**actor_state, _DONE: done + 1},
            confidence=1.0,
        )
