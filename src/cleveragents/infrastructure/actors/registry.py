"""Owns which actors there are: the one that an action names, or what is missing for it."""

import difflib
from collections.abc import Callable, Mapping, Sequence

from cleveragents.application.actor_ports import Actor
from cleveragents.domain.action import SCRIPTED, Action
from cleveragents.domain.errors import ActorUnavailableError
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.actors.given import GivenSteps
from cleveragents.infrastructure.actors.scripted import ScriptedActor
from cleveragents.infrastructure.actors.validating import ValidatingActor

Maker = Callable[[Action], Actor]
"""Makes the actor for an action, or raises ActorUnavailableError with what to do about it."""


class ActorRegistry:
    """Implements the port Actors. `makers` are by the name of the actor; each is called late,
    so that only those who use an actor pay for its libraries. `releases` are called for every
    plan, whoever its actor is."""

    def __init__(
        self, makers: Mapping[str, Maker], releases: Sequence[Callable[[PlanId], None]] = ()
    ) -> None:
        self._makers = makers
        self._releases = releases
        self._scripted = ValidatingActor(ScriptedActor())
        self._made: dict[int, tuple[Action, Actor]] = {}

    def check(self, action: Action) -> None:
        if action.decides:
            self._maker(action)(action)

    def of(self, action: Action) -> Actor:
        if not action.decides:
            return self._scripted
        # Its action grows with each step; the part about the actor stays the same object.
        known = self._made.get(id(action.actor))
        if known is None or known[0].actor is not action.actor:
            known = (action, ValidatingActor(GivenSteps(self._maker(action)(action))))
            self._made[id(action.actor)] = known
        return known[1]

    def release(self, plan_id: PlanId) -> None:
        for release in self._releases:
            release(plan_id)

    def _maker(self, action: Action) -> Maker:
        wanted = action.actor.type
        if wanted in self._makers:
            return self._makers[wanted]
        names = [SCRIPTED, *self._makers]
        close = difflib.get_close_matches(wanted, names, n=1)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        raise ActorUnavailableError(
            f"there is no actor `{wanted}`{meant}", f"use one of {', '.join(names)}"
        )
