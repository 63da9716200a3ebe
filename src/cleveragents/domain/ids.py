"""The identifiers: ULIDs with a type each, so that a plan is never mistaken for a decision."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Self

from cleveragents.domain.errors import InvalidIdError

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_LETTERS = 10
ULID_LETTERS = 26
_LARGEST_FIRST = "7"  # of 130 bits in 26 letters, 128 are used


class Ulid(str):
    """Twenty-six Crockford base-32 characters; lower case is accepted and normalised."""

    __slots__ = ()
    kind: ClassVar[str] = "id"

    def __init_subclass__(cls, *, kind: str) -> None:
        super().__init_subclass__()
        cls.kind = kind

    def __new__(cls, text: str) -> Self:
        normal = text.strip().upper()
        if len(normal) != ULID_LETTERS or normal[0] > _LARGEST_FIRST or not _is_spelled(normal):
            raise InvalidIdError(cls.kind, text)
        return super().__new__(cls, normal)


def made_at(ulid: str) -> float:
    """When it was made, in seconds, by the clock of whoever made it."""
    number = 0
    for letter in ulid[:_TIME_LETTERS]:
        number = number * len(_LETTERS) + _LETTERS.index(letter)
    return number / 1000


SHORTEST_PART = 4


def id_part(text: str) -> str | None:
    """As a part of an id is stored, if this could be one: its beginning or its ending."""
    part = text.strip().upper()
    is_one = SHORTEST_PART <= len(part) <= ULID_LETTERS and _is_spelled(part)
    return part if is_one else None


def _is_spelled(text: str) -> bool:
    """In the letters that ids are written with, and no other."""
    return not text.strip(_LETTERS)


def endings(ids: Iterable[str]) -> Mapping[str, str]:
    """By id, its shortest ending that none of the others has.

    Ids of one day begin alike, so that it is their ends that tell them apart. One that is all
    digits would be taken for a number, and is longer.
    """
    backwards = sorted({ulid[::-1] for ulid in ids})
    found: dict[str, str] = {}
    for before, ulid, after in zip(["", *backwards], backwards, [*backwards[1:], ""], strict=False):
        length = max(_shared(before, ulid), _shared(ulid, after), SHORTEST_PART - 1) + 1
        while length < len(ulid) and ulid[:length].isdecimal():
            length += 1
        found[ulid[::-1]] = ulid[:length][::-1]
    return found


def _shared(one: str, two: str) -> int:
    """How many letters they have in common before they differ."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(two)))


class PlanId(Ulid, kind="plan id"):
    __slots__ = ()


class DecisionId(Ulid, kind="decision id"):
    __slots__ = ()


class CheckpointId(Ulid, kind="checkpoint id"):
    __slots__ = ()


class GroupId(Ulid, kind="checkpoint group id"):
    __slots__ = ()


class ResourceId(Ulid, kind="resource id"):
    __slots__ = ()


class ToolCallId(Ulid, kind="tool call id"):
    __slots__ = ()


class EffectId(Ulid, kind="effect id"):
    __slots__ = ()


class CorrectionId(Ulid, kind="correction id"):
    __slots__ = ()
