"""Owns how a person names a decision: by its id, or by the beginning of it."""

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.domain.decision import Decision
from cleveragents.domain.errors import DecisionAmbiguousError, DecisionNotFoundError
from cleveragents.domain.ids import DecisionId

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
