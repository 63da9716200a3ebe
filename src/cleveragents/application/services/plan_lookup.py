"""Owns how a person names a plan: by its id, by the beginning of it, or as the latest."""

import re

from cleveragents.application.ports import UnitOfWork
from cleveragents.domain.errors import PlanAmbiguousError, PlanNotFoundError
from cleveragents.domain.ids import PlanId

LATEST = "latest"
# Plans of one day have the first letters in common: fewer would only ever be a slip.
_PREFIX = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{5,25}", re.ASCII)


def find_plan(uow: UnitOfWork, wanted: str) -> PlanId:
    """Raises PlanNotFoundError, PlanAmbiguousError or InvalidIdError, rather than guesses."""
    name = wanted.strip().upper()
    if name == LATEST.upper():
        return _latest(uow)
    if not _PREFIX.fullmatch(name):
        return PlanId(wanted)
    found = uow.plans.starting_with(name)
    if len(found) > 1:
        raise PlanAmbiguousError(name, found)
    if not found:
        raise PlanNotFoundError(name)
    return found[0]


def _latest(uow: UnitOfWork) -> PlanId:
    """The newest that a person has made: children are made by their parents."""
    for plan_id in reversed(uow.plans.starting_with("")):
        if uow.plans.get(plan_id).child_of is None:
            return plan_id
    raise PlanNotFoundError
