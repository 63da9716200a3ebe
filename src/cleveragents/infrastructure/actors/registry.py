"""Which actors there are: the one that an action names, or what is missing for it."""

import difflib
from collections.abc import Callable, Mapping
from typing import Protocol

from cleveragents.application.ports.actors import Actor
from cleveragents.domain.action import SCRIPTED, Action, ActorSpec
from cleveragents.domain.errors import ActorUnavailableError
from cleveragents.infrastructure.actors.scripted import (
    GivenSteps,
    OneUse,
    ScriptedActor,
    TimelineSteps,
    ValidatingActor,
)


class ActorKind(Protocol):
    """One kind of actor; looking at it must not load the libraries that only asking it needs."""

    def check(self, action: Action) -> None:
        """Raise ActorUnavailableError if something that can be seen beforehand is missing."""
        ...

    def make(self, action: Action) -> Actor:
        """Raises ActorError if it cannot be asked here and now."""
        ...


class ReadyKind:
    """An actor that needs nothing but to be made."""

    def __init__(self, make: Callable[[Action], Actor]) -> None:
        self._make = make

    def check(self, action: Action) -> None:
        self._make(action)

    def make(self, action: Action) -> Actor:
        return self._make(action)


class ActorRegistry:
    """Implements the port Actors; `kinds` are by the name that action files use."""

    def __init__(self, kinds: Mapping[str, ActorKind]) -> None:
        self._kinds = kinds
        self._scripted = ValidatingActor(ScriptedActor())
        self._timeline = OneUse(ValidatingActor(TimelineSteps()))
        self._made: list[tuple[ActorSpec, Actor]] = []

    def check(self, action: Action) -> None:
        if not action.is_scripted:
            self._kind(action).check(action)

    def of(self, action: Action) -> Actor:
        if action.is_scripted:
            return self._scripted if action.use is None else self._timeline
        made = self._made_for(action)
        return made if action.use is None else OneUse(made)

    def _made_for(self, action: Action) -> Actor:
        for spec, actor in self._made:
            # Nearly always the same object: the action grows, this part of it does not change.
            if spec is action.actor or spec == action.actor:
                return actor
        made = ValidatingActor(GivenSteps(self._kind(action).make(action)))
        self._made.append((action.actor, made))
        return made

    def _kind(self, action: Action) -> ActorKind:
        wanted = action.actor.type
        if wanted in self._kinds:
            return self._kinds[wanted]
        names = [SCRIPTED, *self._kinds]
        close = difflib.get_close_matches(wanted, names, n=1)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        raise ActorUnavailableError(
            f"there is no actor `{wanted}`{meant}", f"use one of {', '.join(names)}"
        )
