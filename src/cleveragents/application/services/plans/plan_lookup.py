"""How a person names a plan: by its id, by the beginning of it, or as the latest."""

import re
from collections.abc import Sequence

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.domain.decision import Decision
from cleveragents.domain.errors import (
    DecisionAmbiguousError,
    DecisionNotFoundError,
    NoPlanHereError,
    PlanAmbiguousError,
    PlanNotFoundError,
)
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.places import latest_of

SHORTEST_PREFIX = 4


def find_decision(uow: UnitOfWork, wanted: str) -> Decision:
    """Of any plan. Raises DecisionNotFoundError or DecisionAmbiguousError, rather than guesses."""
    name = wanted.strip().upper()
    if len(name) == 26:
        return uow.decisions.get(DecisionId(name))
    found = uow.decisions.starting_with(name) if len(name) >= SHORTEST_PREFIX else ()
    if len(found) > 1:
        raise DecisionAmbiguousError(name, found)
    if not found:
        raise DecisionNotFoundError(name)
    return uow.decisions.get(found[0])


LATEST = "latest"
# Plans of one day have the first letters in common: fewer would only ever be a slip.
_PREFIX = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{5,25}", re.ASCII)
_ELSEWHERE = 3


def find_plan(uow: UnitOfWork, wanted: str, around: Sequence[str] | None) -> PlanId:
    """`around` are the folders one stands in; None if `latest` may be a plan of any place.

    Raises PlanNotFoundError, NoPlanHereError, PlanAmbiguousError or InvalidIdError, rather than
    guesses.
    """
    name = wanted.strip().upper()
    if name == LATEST.upper():
        return _latest(uow, around)
    if not _PREFIX.fullmatch(name):
        return PlanId(wanted)
    found = uow.plans.starting_with(name)
    if len(found) > 1:
        raise PlanAmbiguousError(name, found)
    if not found:
        raise PlanNotFoundError(name)
    return found[0]


def _latest(uow: UnitOfWork, around: Sequence[str] | None) -> PlanId:
    """The last that a person has made: children are made by their parents."""
    plans = uow.plans.places()
    if not plans:
        raise PlanNotFoundError
    if around is None:
        return plans[0].plan_id
    found = latest_of(plans, around)
    if found is None:
        told = [f"{p.plan_id}  {p.action}  {p.place or '-'}" for p in plans[:_ELSEWHERE]]
        raise NoPlanHereError(around[0], told, len(plans) - len(told))
    return found.plan_id
