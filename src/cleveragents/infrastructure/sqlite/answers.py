"""What the process inside may answer, and the refusal of an answer of any other shape.

Each is taken apart here, so that whoever reads one further needs no more care than with any text.
"""

from typing import Annotated, TypeVar

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import replace

from cleveragents.domain.changes import ChangeKind
from cleveragents.infrastructure.sqlite.messages import NonsenseError, Value

Scalar = None | int | float | str
Count = Annotated[int, Meta(ge=0)]
_LONGEST_NOTE = 2000
_MOST_NOTES = 10
_Shape = TypeVar("_Shape")


class RefusedInsideError(Exception):
    """`kind` is one of the words that messages has for it; `what` and `hint` are for people."""

    def __init__(self, kind: str, what: str, hint: str) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.hint = hint


class _Fields(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A list of exactly these, in this order."""


class Found(_Fields, frozen=True):
    """What SQL gave back. `notes` tell what was unusual about the database."""

    columns: list[str]
    rows: list[list[Scalar]]
    truncated: bool
    changed: Count
    notes: tuple[str, ...]


class TableDifference(_Fields, frozen=True):
    """`table` is empty for what concerns the whole database."""

    table: str
    kind: ChangeKind
    insertions: Count
    deletions: Count


class DatabaseDifference(_Fields, frozen=True):
    parts: tuple[TableDifference, ...]
    patch: str
    notes: tuple[str, ...]


def granted(answer: Value) -> Value:
    """The result in an answer. Raises RefusedInsideError, or NonsenseError."""
    match answer:
        case [True, result]:
            return result
        case [False, str(kind), str(what), str(hint)]:
            raise RefusedInsideError(kind, what[:_LONGEST_NOTE], hint[:_LONGEST_NOTE])
        case _:
            raise NonsenseError("neither yes nor no")


def text(value: Value) -> str:
    return _shaped(value, str)


def notes(value: Value) -> tuple[str, ...]:
    return _bounded(_shaped(value, tuple[str, ...]))


def found(value: Value, limit: int) -> Found:
    answer = _shaped(value, Found)
    if len(answer.rows) > limit:
        raise NonsenseError("more rows than were asked for")
    if any(len(row) != len(answer.columns) for row in answer.rows):
        raise NonsenseError("a row that has not the columns that were told")
    return replace(answer, notes=_bounded(answer.notes))


def difference(value: Value) -> DatabaseDifference:
    answer = _shaped(value, DatabaseDifference)
    return replace(answer, notes=_bounded(answer.notes))


def _shaped(value: Value, shape: type[_Shape]) -> _Shape:
    try:
        return convert(value, shape)
    except ValidationError as error:
        raise NonsenseError(str(error)) from error


def _bounded(told: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(note[:_LONGEST_NOTE] for note in told[:_MOST_NOTES])
