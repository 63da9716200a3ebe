"""What the use cases need of actors: whoever decides the next step of a plan."""

from collections.abc import Mapping
from typing import Any, Protocol

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


class Actor(Protocol):
    """Keeps nothing of a plan for itself: all it remembers is in the state it is given.

    Several plans may ask it at the same time.
    """

    def strategize(self, situation: Situation) -> Strategy:
        """What it expects to do; nothing is changed. Asked each time that Execute begins."""
        ...

    def decide(self, situation: Situation) -> Proposal | Unannounced | Finished:
        """The next step, or that one may have been taken already, or that the work is done.

        Raises ActorError if it cannot say.
        """
        ...

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:
        """Remember what came of a step; `state` is that of its proposal."""
        ...


class Actors(Protocol):
    def check(self, action: Action) -> None:
        """Raise ActorUnavailableError unless the action's actor could be asked here."""
        ...

    def of(self, action: Action) -> Actor:
        """Raises ActorUnavailableError."""
        ...
