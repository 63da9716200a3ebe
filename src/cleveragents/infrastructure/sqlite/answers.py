"""What the process inside may answer: each answer is taken apart, and refused if its shape is
not the one that was asked for. Whoever reads one further needs no more care than with any text."""

from collections.abc import Sequence

from msgspec import Struct

from cleveragents.domain.changes import ChangeKind
from cleveragents.infrastructure.sqlite.messages import NonsenseError, Value

Scalar = None | int | float | str
_LONGEST_NOTE = 2000
_MOST_NOTES = 10


class RefusedInsideError(Exception):
    """`kind` is one of the words that messages has for it; `what` and `hint` are for people."""

    def __init__(self, kind: str, what: str, hint: str) -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.hint = hint


class Found(Struct, frozen=True, kw_only=True):
    """What SQL gave back. `notes` tell what was unusual about the database."""

    columns: list[str]
    rows: list[list[Scalar]]
    truncated: bool
    changed: int
    notes: tuple[str, ...]


class TableDifference(Struct, frozen=True, kw_only=True):
    """`table` is empty for what concerns the whole database."""

    table: str
    kind: ChangeKind
    insertions: int
    deletions: int


class DatabaseDifference(Struct, frozen=True, kw_only=True):
    parts: tuple[TableDifference, ...]
    patch: str
    notes: tuple[str, ...]


def granted(answer: Value) -> Value:
    """The result in an answer. Raises RefusedInsideError, or NonsenseError."""
    parts = _list(answer)
    if len(parts) == 2 and parts[0] is True:
        return parts[1]
    if len(parts) == 4 and parts[0] is False:
        raise RefusedInsideError(text(parts[1]), _short(parts[2]), _short(parts[3]))
    raise NonsenseError("neither yes nor no")


def text(value: Value) -> str:
    if not isinstance(value, str):
        raise NonsenseError("no text where there should be one")
    return value


def notes(value: Value) -> tuple[str, ...]:
    return tuple(_short(note) for note in _list(value)[:_MOST_NOTES])


def found(value: Value, limit: int) -> Found:
    columns, rows, truncated, changed, told = _exactly(5, value)
    names = [text(name) for name in _list(columns)]
    table = [[_scalar(cell) for cell in _exactly(len(names), row)] for row in _list(rows)]
    if len(table) > limit:
        raise NonsenseError("more rows than were asked for")
    return Found(
        columns=names,
        rows=table,
        truncated=truncated is True,
        changed=_count(changed),
        notes=notes(told),
    )


def difference(value: Value) -> DatabaseDifference:
    parts, patch, told = _exactly(3, value)
    return DatabaseDifference(
        parts=tuple(_part(part) for part in _list(parts)), patch=text(patch), notes=notes(told)
    )


def _part(value: Value) -> TableDifference:
    table, kind, insertions, deletions = _exactly(4, value)
    try:
        change = ChangeKind(text(kind))
    except ValueError as error:
        raise NonsenseError(str(error)) from error
    return TableDifference(
        table=text(table),
        kind=change,
        insertions=_count(insertions),
        deletions=_count(deletions),
    )


def _list(value: Value) -> Sequence[Value]:
    if not isinstance(value, list):
        raise NonsenseError("no list where there should be one")
    return value


def _exactly(count: int, value: Value) -> Sequence[Value]:
    items = _list(value)
    if len(items) != count:
        raise NonsenseError(f"{len(items)} values where there should be {count}")
    return items


def _scalar(value: Value) -> Scalar:
    if value is None or (isinstance(value, int | float | str) and not isinstance(value, bool)):
        return value
    raise NonsenseError("a value that no row holds")


def _count(value: Value) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise NonsenseError("no count where there should be one")
    return value


def _short(value: Value) -> str:
    return text(value)[:_LONGEST_NOTE]
