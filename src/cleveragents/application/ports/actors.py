"""Where the steps of a plan come from: action files, and actors, whoever decides the next one."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cleveragents.domain.action import Action, ResourceSpec, Step
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


class ActionSurvey(Protocol):
    """Looks at what an action file names, while it is read: its mistakes are told together."""

    def resource_problems(self, specs: Sequence[ResourceSpec]) -> Sequence[tuple[str, str]]:
        """By the name of a resource, what a plan could not work on, and why."""
        ...

    def actor_problem(self, action: Action) -> str | None:
        """Why the actor could not be asked here; asked if nothing else is wrong."""
        ...


class ActionReader(Protocol):
    def read(
        self, path: str, overrides: Mapping[str, str], survey: ActionSurvey | None = None
    ) -> Action:
        """Raises ActionNotFoundError or ActionFileError with every problem found."""
        ...

    def read_step(self, path: str, action: Action, index: int) -> Step:
        """One step that takes the place of another; raises StepFileError or as `read` does."""
        ...

    def read_steps(self, path: str, action: Action) -> Sequence[Step]:
        """One step or a list of them, for a child that has all resources; raises the same."""
        ...
