"""Owns the tools that work on a database of a plan: `sql.execute` and `sql.query`.

SQL reaches the sandbox's database and nothing else: no other file, no setting of the file itself.
"""

import math
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError, ToolTimeoutError
from cleveragents.infrastructure.tools.sql_rules import (
    Allowed,
    Rules,
    may_read,
    may_write,
    statements,
)
from cleveragents.infrastructure.tools.sql_table import as_table

Arguments = Mapping[str, Any]
_MOST_ROWS = 1000
_MOST_BYTES = 1024 * 1024
_STEPS_BETWEEN_LOOKS = 2000
# A number or a text in the parameters that SQLite has no room for is none of its own errors.
_ERRORS = (sqlite3.Error, OverflowError, UnicodeError)
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


@dataclass(slots=True)
class _Rows:
    """The rows that are given back, and whether there were more."""

    columns: list[str] = field(default_factory=list[str])
    rows: list[list[Any]] = field(default_factory=list[list[Any]])
    truncated: bool = False

    def result(self, note: str = "", **values: Any) -> ToolResult:
        shown = as_table(self.columns, self.rows) if self.columns else ""
        more = "there are more rows than are shown" if self.truncated else ""
        lines = [line for line in (shown, more, note) if line]
        found = {"columns": self.columns, "rows": self.rows, "truncated": self.truncated}
        return ToolResult(output="\n".join(lines), values={**found, **values})


def execute(path: str, arguments: Arguments, timeout: float) -> ToolResult:
    """All statements in one transaction: either every one of them works, or nothing changes."""
    parts = list(statements(arguments["sql"]))
    parameters = _parameters("sql.execute", arguments, len(parts))
    with _database("sql.execute", path, timeout, may_write) as (db, rules):
        before = db.total_changes
        # SQLite makes a transaction of its own for VACUUM, and refuses it inside another.
        vacuum = len(parts) == 1 and parts[0].split()[0].rstrip(";").upper() == "VACUUM"
        with rules.in_transaction() if vacuum else _transaction(db, rules):
            found = _run_all(db, parts, parameters)
        changed = db.total_changes - before
    note = f"{changed} row{'' if changed == 1 else 's'} changed"
    return found.result(note, rows_changed=changed)


def query(path: str, arguments: Arguments, timeout: float) -> ToolResult:
    parts = list(statements(arguments["sql"]))
    if len(parts) != 1:
        raise ToolError(
            f"sql.query: `sql` has {len(parts)} statements", "give it one statement that reads"
        )
    limit = _limit(arguments)
    parameters = _parameters("sql.query", arguments, 1)
    with _database("sql.query", path, timeout, may_read) as (db, _):
        found = _collected(db.execute(parts[0], parameters), limit)
    count = len(found.rows)
    return found.result(f"{count} row{'' if count == 1 else 's'}", count=count)


def _run_all(db: sqlite3.Connection, parts: Sequence[str], parameters: Any) -> _Rows:
    """Gives back what the last statement returned."""
    found = _Rows()
    for number, part in enumerate(parts, start=1):
        with _named(number, len(parts)):
            found = _collected(db.execute(part, parameters), _MOST_ROWS)
    return found


SQL_TOOLS: Mapping[str, Callable[[str, Arguments, float], ToolResult]] = {
    "sql.execute": execute,
    "sql.query": query,
}


@contextmanager
def _database(
    tool: str, path: str, timeout: float, allowed: Allowed
) -> Generator[tuple[sqlite3.Connection, Rules]]:
    """Errors of SQLite inside the block are told in the words of the tool."""
    _refuse_strange(tool, path)
    rules = Rules(allowed)
    clock = _Clock(timeout)
    try:
        with closing(_connected(path, timeout)) as db:
            if allowed is may_read:
                db.execute("PRAGMA query_only=ON")
            db.set_authorizer(rules)
            db.set_progress_handler(clock, _STEPS_BETWEEN_LOOKS)
            yield db, rules
    except _ERRORS as error:
        raise _told(tool, path, error, rules, clock) from error


def _connected(path: str, timeout: float) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(path))}?mode=rw"
    db = sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)
    db.text_factory = _text
    return db


def _refuse_strange(tool: str, path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        raise ToolError(f"{tool}: {path} is a folder, not a database", "name a sqlite resource")
    if os.path.islink(path) or not os.path.isfile(path):
        raise ToolError(
            f"{tool}: there is no database at {path} any more",
            "a step deleted or replaced it; roll back to an earlier checkpoint",
        )


class _Clock:
    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._deadline = time.monotonic() + timeout

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._deadline

    def __call__(self) -> int:
        return int(self.is_over)


@contextmanager
def _transaction(db: sqlite3.Connection, rules: Rules) -> Generator[None]:
    with rules.in_transaction():
        db.execute("BEGIN IMMEDIATE")
    try:
        yield
        with rules.in_transaction():
            db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error), rules.in_transaction():
            db.execute("ROLLBACK")
        raise


@contextmanager
def _named(number: int, count: int) -> Generator[None]:
    try:
        yield
    except _ERRORS as error:
        if count > 1:
            error.add_note(f"statement {number} of {count}")
        raise


def _told(tool: str, path: str, error: Exception, rules: Rules, clock: _Clock) -> ToolError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    where = "".join(f"{note}: " for note in getattr(error, "__notes__", []))
    if rules.refusal is not None:
        return ToolError(f"{tool}: {where}{rules.refusal.what}", rules.refusal.hint)
    if code == sqlite3.SQLITE_INTERRUPT and clock.is_over:
        return ToolTimeoutError(tool, clock.timeout)
    if code in _LOCKED:
        return ToolError(
            f"{tool}: {path} is locked by another process",
            "end what an earlier step left running, then resume the plan",
        )
    return ToolError(
        f"{tool}: {where}{error}", "nothing was changed; correct `sql` and resume the plan"
    )


def _parameters(tool: str, arguments: Arguments, count: int) -> Any:
    given: Any = arguments.get("parameters", ())
    if count != 1 and given and not isinstance(given, dict):
        raise ToolError(
            f"{tool}: a list of parameters goes with one statement, and there are {count}",
            "give the parameters names: `:name` in the SQL, and a map under `parameters`",
        )
    return cast("Any", given)


def _limit(arguments: Arguments) -> int:
    limit = arguments.get("limit", _MOST_ROWS)
    if not isinstance(limit, int) or limit < 1:
        raise ToolError(f"sql.query: `limit` is {limit}", "give a whole number of at least 1")
    return limit


def _collected(cursor: sqlite3.Cursor, limit: int) -> _Rows:
    """The first rows; a writing statement is carried out to its end whatever it returns."""
    found = _Rows(columns=[column[0] for column in cursor.description or ()])
    room = _MOST_BYTES
    for row in _rows(cursor):
        if len(found.rows) == limit or room <= 0:
            found.truncated = True
            break
        values = [_plain(value) for value in row]
        room -= sum(len(value) if isinstance(value, str) else 8 for value in values)
        found.rows.append(values)
    cursor.close()
    return found


def _rows(cursor: sqlite3.Cursor) -> Iterator[Sequence[Any]]:
    yield from cursor


def _plain(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
