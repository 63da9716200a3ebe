"""Inside: carries out `sql.execute` and `sql.query`, within their rules, time and room."""

import math
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence

from cleveragents.infrastructure.sqlite.inside_base import RefusedError, opened, refusal
from cleveragents.infrastructure.sqlite.inside_rules import (
    Allowed,
    StatementRules,
    may_read,
    may_write,
    statements,
)
from cleveragents.infrastructure.sqlite.messages import RULE, TIME, Value

MOST_ROWS = 1000
_MOST_BYTES = 1024 * 1024
_SHOWN_AT_LEAST = 1000
_STEPS_BETWEEN_LOOKS = 2000
# A number or a text in the parameters that SQLite has no room for is none of its own errors.
_ERRORS = (sqlite3.Error, OverflowError, UnicodeError)
Parameters = Sequence[Value] | Mapping[str, Value]


class Rows:
    """The rows that are given back, and whether there were more."""

    def __init__(self, columns: list[str]) -> None:
        self.columns = columns
        self.rows: list[list[Value]] = []
        self.truncated = False

    def told(self) -> list[Value]:
        return [self.columns, self.rows, self.truncated]


def execute(path: str, sql: str, parameters: Parameters, seconds: float) -> list[Value]:
    """All statements in one transaction: either every one of them works, or nothing changes."""
    parts = list(statements(sql))
    _refuse_list(parameters, len(parts))
    call = _StatementCall(path, seconds, may_write)
    try:
        before = call.db.total_changes
        found = call.changed(parts, parameters)
        return [*found.told(), call.db.total_changes - before, call.notes]
    except _ERRORS as error:
        raise call.told(error) from error
    finally:
        call.db.close()


def query(path: str, sql: str, parameters: Parameters, limit: int, seconds: float) -> list[Value]:
    parts = list(statements(sql))
    if len(parts) != 1:
        raise RefusedError(
            RULE, f"`sql` has {len(parts)} statements", "give it one statement that reads"
        )
    call = _StatementCall(path, seconds, may_read)
    try:
        found = collected(call.db.execute(parts[0], parameters), limit)
        return [*found.told(), 0, call.notes]
    except _ERRORS as error:
        raise call.told(error) from error
    finally:
        call.db.close()


class _StatementCall:
    """One call on a database: its connection, which asks the rules, and ends when time is over."""

    def __init__(self, path: str, seconds: float, allowed: Allowed) -> None:
        self._deadline = time.monotonic() + seconds
        self._rules = StatementRules(allowed)
        self._where = ""
        try:
            self.db, self.notes = opened(path, seconds)
            if allowed is may_read:
                self.db.execute("PRAGMA query_only=ON")
        except sqlite3.Error as error:
            raise refusal(error) from error
        self.db.set_authorizer(self._rules)
        self.db.set_progress_handler(lambda: int(self._is_over), _STEPS_BETWEEN_LOOKS)

    def changed(self, parts: Sequence[str], parameters: Parameters) -> Rows:
        """Gives back what the last statement returned."""
        # SQLite makes a transaction of its own for VACUUM, and refuses it inside another.
        if len(parts) == 1 and parts[0].split()[0].rstrip(";").upper() == "VACUUM":
            self._rules.run_our_own(self.db, parts[0])
            return Rows([])
        self._rules.run_our_own(self.db, "BEGIN IMMEDIATE")
        try:
            found = self._run_all(parts, parameters)
            self._rules.run_our_own(self.db, "COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self._rules.run_our_own(self.db, "ROLLBACK")
            raise
        return found

    def _run_all(self, parts: Sequence[str], parameters: Parameters) -> Rows:
        found = Rows([])
        for number, part in enumerate(parts, start=1):
            self._where = f"statement {number} of {len(parts)}: " if len(parts) > 1 else ""
            found = collected(self.db.execute(part, parameters), MOST_ROWS)
        self._where = ""
        return found

    @property
    def _is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def told(self, error: Exception) -> RefusedError:
        found = refusal(error)
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if self._rules.refusal is not None:
            what, hint = self._rules.refusal
            return RefusedError(RULE, f"{self._where}{what}", hint)
        if code == sqlite3.SQLITE_INTERRUPT and self._is_over:
            return RefusedError(TIME, "it took too long")
        return RefusedError(found.kind, f"{self._where}{found.what}")


def _refuse_list(parameters: Parameters, count: int) -> None:
    if count != 1 and parameters and not isinstance(parameters, Mapping):
        raise RefusedError(
            RULE,
            f"a list of parameters goes with one statement, and there are {count}",
            "give the parameters names: `:name` in the SQL, and a map under `parameters`",
        )


def collected(cursor: sqlite3.Cursor, limit: int) -> Rows:
    """The first rows; a writing statement is carried out to its end whatever it returns."""
    found = Rows([column[0] for column in cursor.description or ()])
    room = _MOST_BYTES
    for row in _rows(cursor):
        if len(found.rows) == limit or room <= 0:
            found.truncated = True
            break
        values: list[Value] = []
        for value in row:
            most = max(room, _SHOWN_AT_LEAST)
            found.truncated = found.truncated or _is_longer(value, most)
            values.append(_plain(value, most))
            room -= len(values[-1]) if isinstance(values[-1], str) else 8
        found.rows.append(values)
    cursor.close()
    return found


def _rows(cursor: sqlite3.Cursor) -> Iterator[Sequence[Value]]:
    yield from cursor


def _plain(value: Value, most: int) -> Value:
    """As JSON can hold it; of a very long one the beginning, and how much more there is."""
    if isinstance(value, bytes):
        return f"x'{value[:most].hex()}'" + _left_out(value, most, "bytes")
    if isinstance(value, str):
        return value[:most] + _left_out(value, most, "characters")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _is_longer(value: Value, most: int) -> bool:
    return isinstance(value, str | bytes) and len(value) > most


def _left_out(value: str | bytes, most: int, what: str) -> str:
    return f"… [{len(value) - most} {what} left out]" if _is_longer(value, most) else ""
