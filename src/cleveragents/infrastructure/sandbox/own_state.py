"""What a type of resource keeps for itself: its details, and the token of an apply.

It goes to the records as plain values. Only the type that wrote it reads it back, as the same
Struct or not at all.
"""

from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert, to_builtins

from cleveragents.domain.errors import DatabaseDamagedError
from cleveragents.domain.resource import OwnState, PlanResource

S = TypeVar("S", bound=Struct)


def to_plain(state: Struct) -> dict[str, Any]:
    return to_builtins(state)


def read_back(resource: PlanResource, state: OwnState | None, kind: type[S]) -> S:
    """Raises DatabaseDamagedError."""
    try:
        return convert(state, kind)
    except ValidationError as error:
        told = f"what plan {resource.plan_id} keeps of `{resource.name}` cannot be read: {error}"
        raise DatabaseDamagedError("of plans", told) from error
