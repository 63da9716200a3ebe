"""How values become rows and back: one rule for all tables, columns being named like fields.

Times are text, and what is no text, number or truth is JSON, in a column that ends in `_json`.
msgspec reads both as the types that the fields have, and so finds what is not as we write it.
"""

import sqlite3
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import MsgspecError, Struct, ValidationError, convert, json, to_builtins

from cleveragents.domain.errors import InvalidIdError
from cleveragents.domain.resource_kinds import ResourceType, type_named

if TYPE_CHECKING:
    from json import JSONEncoder

Row = sqlite3.Row
_JSON = "_json"
_UNREADABLE = (ValueError, TypeError, InvalidIdError, ValidationError)
# What has columns of its own wherever it is part of a value.
_SPREAD = {
    "position": {"timeline": "position.timeline", "seq": "position.seq"},
    "result": {"output": "result.output", "values_json": "result.values"},
}
V = TypeVar("V", bound=Struct)
T = TypeVar("T")


class DamagedRowError(sqlite3.DatabaseError):
    """A row that cannot be read as what it is; says which one, and why."""


class Table(Generic[V]):
    """`kind` are the values that are its rows, and the column `key` names one. `places` are the
    columns that are not called like the field, or hold only a part of it: `start.seq`."""

    def __init__(self, name: str, key: str, kind: type[V], places: Mapping[str, str] = {}) -> None:
        self._name, self._key, self._kind = name, key, kind
        fields = kind.__struct_fields__
        self._places = {name: name for name in fields} | {name + _JSON: name for name in fields}
        for field in set(fields) & _SPREAD.keys():
            self._places |= _SPREAD[field]
        self._places |= places
        self._columns: dict[str, Callable[[V], object]] = {}
        self._layouts: dict[tuple[str, ...], list[tuple[int, str, str, bool]]] = {}

    def insert(self, connection: sqlite3.Connection, value: V, **more: object) -> None:
        """`more` are columns that are no part of the value."""
        row = self._row(connection, value) | more
        marks = ", ".join("?" for _ in row)
        connection.execute(
            f"INSERT INTO {self._name} ({', '.join(row)}) VALUES ({marks})", [*row.values()]
        )

    def update(self, connection: sqlite3.Connection, value: V) -> int:
        """Set all columns of the row that its key names; rows changed."""
        row = self._row(connection, value)
        key = row.pop(self._key)
        assignments = ", ".join(f"{column} = ?" for column in row)
        cursor = connection.execute(
            f"UPDATE {self._name} SET {assignments} WHERE {self._key} = ?", [*row.values(), key]
        )
        return cursor.rowcount

    def select(self, connection: sqlite3.Connection, rest: str, *keys: object) -> list[V]:
        return [
            self.read(row) for row in connection.execute(f"SELECT * FROM {self._name} {rest}", keys)
        ]

    def read(self, row: Row, **more: object) -> V:
        """`more` are fields that have no column. Raises DamagedRowError."""
        found: dict[str, Any] = more
        try:
            for number, whole, part, is_json in self._layout(row):
                value = row[number]
                if is_json and value is not None:
                    value = from_json(value)
                if not part:
                    found[whole] = value
                elif value is not None:  # of what is not there, no part is
                    found.setdefault(whole, {})[part] = value
            return typed(found, self._kind)
        except _UNREADABLE as error:
            what = f"{type(error).__name__}: {error}"
            name = f"{row[self._key]} in {self._name}"
            raise DamagedRowError(f"{name} cannot be read: {what}") from error

    def _layout(self, row: Row) -> list[tuple[int, str, str, bool]]:
        """Which column is which part of what: looked up once for all rows of a statement."""
        names = tuple(row.keys())
        found = self._layouts.get(names)
        if found is None:
            places = ((n, name, self._places.get(name, "")) for n, name in enumerate(names))
            found = [
                (number, place.partition(".")[0], place.partition(".")[2], name.endswith(_JSON))
                for number, name, place in places
                if place
            ]
            self._layouts[names] = found
        return found

    def _row(self, connection: sqlite3.Connection, value: V) -> dict[str, object]:
        if not self._columns:
            asked = connection.execute(f"SELECT * FROM {self._name} LIMIT 0")
            names = [column[0] for column in asked.description]
            self._columns = {
                name: attrgetter(self._places[name]) for name in names if name in self._places
            }
        return {name: _stored(name, get(value)) for name, get in self._columns.items()}


def _stored(column: str, value: Any) -> object:
    if column.endswith(_JSON):
        return None if value is None else to_json(value)
    return to_text(value) if isinstance(value, datetime) else storable(value)


def to_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def to_json(value: object) -> str:
    """With surrogates, which msgspec's own JSON refuses: bytes of paths that are not UTF-8."""
    return _writer().encode(to_builtins(value, enc_hook=_plain))


@cache
def _writer() -> "JSONEncoder":
    from json import JSONEncoder  # noqa: PLC0415 - who only reads does not pay for it

    return JSONEncoder(separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Any:
    """The same way back. Raises ValueError."""
    try:
        return json.decode(text)
    except MsgspecError:
        from json import loads  # noqa: PLC0415 - as above

        return loads(text)


def typed(value: object, kind: type[T]) -> T:
    """Raises what `_UNREADABLE` names."""
    # Not strictly: SQLite has no truth, but 0 and 1.
    return convert(value, kind, strict=False, dec_hook=_told)


def _plain(value: object) -> str:
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _told(kind: type[Any], value: Any) -> Any:
    """An id, or the type of a resource."""
    return type_named(value) if kind is ResourceType else kind(value)


def storable(value: object) -> object:
    """Text as it is; bytes that were not UTF-8, such as a file's name in an output, escaped."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


def set_flag(
    connection: sqlite3.Connection,
    table: str,
    key: str,
    flag: str,
    plan_id: str,
    wanted: Collection[str],
) -> None:
    """Make `flag` true for exactly the `wanted` rows of the plan."""
    rows = connection.execute(f"SELECT {key}, {flag} FROM {table} WHERE plan_id = ?", (plan_id,))
    changes = [(row[0] in wanted, row[0]) for row in rows if (row[0] in wanted) != bool(row[1])]
    connection.executemany(f"UPDATE {table} SET {flag} = ? WHERE {key} = ?", changes)
