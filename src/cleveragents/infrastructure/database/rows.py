"""How values become columns and back: times, JSON and inserts."""

import functools
import json
import sqlite3
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec import ValidationError

from cleveragents.domain.errors import InvalidIdError

Row = sqlite3.Row
_UNREADABLE = (
    *(ValueError, TypeError, LookupError, AttributeError),
    *(InvalidIdError, ValidationError),
)
P = ParamSpec("P")
T = TypeVar("T")


def to_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds")


def to_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def sure_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def from_json(text: str) -> Any:
    return json.loads(text)


def insert(connection: sqlite3.Connection, table: str, values: Mapping[str, object]) -> None:
    columns = ", ".join(values)
    marks = ", ".join("?" for _ in values)
    parameters = [storable(value) for value in values.values()]
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", parameters)


def update(
    connection: sqlite3.Connection, table: str, key: str, values: Mapping[str, object]
) -> int:
    """Set all columns of the row whose `key` column has the value in `values`; rows changed."""
    assignments = ", ".join(f"{column} = ?" for column in values if column != key)
    parameters = [storable(value) for column, value in values.items() if column != key]
    cursor = connection.execute(
        f"UPDATE {table} SET {assignments} WHERE {key} = ?", (*parameters, values[key])
    )
    return cursor.rowcount


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


class DamagedRowError(sqlite3.DatabaseError):
    """A row that cannot be read as what it is; says which one, and why."""


def row_of(
    table: str, key: str
) -> Callable[[Callable[Concatenate[Row, P], T]], Callable[Concatenate[Row, P], T]]:
    """For what reads a row of this table, in which `key` names it. Raises DamagedRowError."""

    def careful(read: Callable[Concatenate[Row, P], T]) -> Callable[Concatenate[Row, P], T]:
        @functools.wraps(read)
        def reading(row: Row, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(row, *args, **kwargs)
            except _UNREADABLE as error:
                what = f"{type(error).__name__}: {error}"
                raise DamagedRowError(f"{row[key]} in {table} cannot be read: {what}") from error

        return reading

    return careful
