"""The identifiers: ULIDs with a type each, so that a plan is never mistaken for a decision."""

import re
from typing import Self

from cleveragents.domain.errors import InvalidIdError

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_LETTERS = 10
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)


class Ulid(str):
    """Twenty-six Crockford base-32 characters; lower case is accepted and normalised."""

    __slots__ = ()
    kind = "id"

    def __new__(cls, text: str) -> Self:
        normal = text.strip().upper()
        if not _ULID.fullmatch(normal):
            raise InvalidIdError(cls.kind, text)
        return super().__new__(cls, normal)


def made_at(ulid: str) -> float:
    """When it was made, in seconds, by the clock of whoever made it."""
    number = 0
    for letter in ulid[:_TIME_LETTERS]:
        number = number * len(_LETTERS) + _LETTERS.index(letter)
    return number / 1000


class PlanId(Ulid):
    __slots__ = ()
    kind = "plan id"


class DecisionId(Ulid):
    __slots__ = ()
    kind = "decision id"


class CheckpointId(Ulid):
    __slots__ = ()
    kind = "checkpoint id"


class GroupId(Ulid):
    __slots__ = ()
    kind = "checkpoint group id"


class ResourceId(Ulid):
    __slots__ = ()
    kind = "resource id"


class ToolCallId(Ulid):
    __slots__ = ()
    kind = "tool call id"


class EffectId(Ulid):
    __slots__ = ()
    kind = "effect id"


class CorrectionId(Ulid):
    __slots__ = ()
    kind = "correction id"
