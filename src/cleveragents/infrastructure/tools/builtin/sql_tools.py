"""The tools that work on a database of a plan: `sql.execute` and `sql.query`.

SQL reaches the sandbox's database and nothing else: no other file, no setting of the file itself.
It runs inside, like a command of a step.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError, ToolTimeoutError
from cleveragents.infrastructure.sqlite.answers import Found, RefusedInsideError
from cleveragents.infrastructure.sqlite.messages import BUSY, RULE, TIME
from cleveragents.infrastructure.sqlite.worker import (
    DatabasePlace,
    DatabaseWorkers,
    LostInsideError,
)

_WIDEST = 60


def as_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    cells = [[_cell(value) for value in row] for row in rows]
    heads = [_cell(column) for column in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    numbers = [
        bool(rows) and all(value is None or isinstance(value, int | float) for value in column)
        for column in zip(*rows, strict=True)
    ] or [False] * len(columns)
    lines = [_line(heads, widths, numbers), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths, numbers) for row in cells]
    return "\n".join(line.rstrip() for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    return "  ".join(
        cell.rjust(width) if number else cell.ljust(width)
        for cell, width, number in zip(cells, widths, numbers, strict=True)
    )


def _cell(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    one_line = "\\n".join(text.splitlines()) if text else ""
    return one_line if len(one_line) <= _WIDEST else one_line[: _WIDEST - 1] + "…"


Arguments = Mapping[str, Any]
_MOST_ROWS = 1000
_HINT = "nothing was changed; correct `sql` and resume the plan"


def execute(
    workers: DatabaseWorkers, place: DatabasePlace, arguments: Arguments, timeout: float
) -> ToolResult:
    """All statements in one transaction: either every one of them works, or nothing changes."""
    with _told("sql.execute", place.path, timeout):
        found = workers.execute(place, arguments["sql"], _parameters(arguments), timeout)
    note = f"{found.changed} row{'' if found.changed == 1 else 's'} changed"
    return _result(found, note, rows_changed=found.changed)


def query(
    workers: DatabaseWorkers, place: DatabasePlace, arguments: Arguments, timeout: float
) -> ToolResult:
    limit = _limit(arguments)
    with _told("sql.query", place.path, timeout):
        found = workers.query(place, arguments["sql"], _parameters(arguments), limit, timeout)
    count = len(found.rows)
    return _result(found, f"{count} row{'' if count == 1 else 's'}", count=count)


SQL_TOOLS: Mapping[
    str, Callable[[DatabaseWorkers, DatabasePlace, Arguments, float], ToolResult]
] = {
    "sql.execute": execute,
    "sql.query": query,
}


def _result(found: Found, note: str, **values: Any) -> ToolResult:
    shown = as_table(found.columns, found.rows) if found.columns else ""
    more = "there are more rows than are shown" if found.truncated else ""
    lines = [line for line in (shown, more, note, *found.notes) if line]
    told = {"columns": found.columns, "rows": found.rows, "truncated": found.truncated}
    return ToolResult(output="\n".join(lines), values={**told, **values})


@contextmanager
def _told(tool: str, path: str, timeout: float) -> Generator[None]:
    """What goes wrong inside is told in the words of the tool."""
    _refuse_strange(tool, path)
    try:
        yield
    except RefusedInsideError as error:
        raise _refused(tool, path, timeout, error) from error
    except (LostInsideError, OverflowError) as error:
        if isinstance(error, LostInsideError) and error.late:
            raise ToolTimeoutError(tool, timeout) from error
        raise ToolError(f"{tool}: {error}", _HINT) from error


def _refused(tool: str, path: str, timeout: float, error: RefusedInsideError) -> ToolError:
    if error.kind == TIME:
        return ToolTimeoutError(tool, timeout)
    if error.kind == BUSY:
        return ToolError(
            f"{tool}: {path} is locked by another process",
            "end what an earlier step left running, then resume the plan",
        )
    hint = error.hint if error.kind == RULE else error.hint or _HINT
    return ToolError(f"{tool}: {error.what}", hint)


def _refuse_strange(tool: str, path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        raise ToolError(f"{tool}: {path} is a folder, not a database", "name a sqlite resource")
    if os.path.islink(path) or not os.path.isfile(path):
        raise ToolError(
            f"{tool}: there is no database at {path} any more",
            "a step deleted or replaced it; roll back to an earlier checkpoint",
        )


def _parameters(arguments: Arguments) -> Any:
    return arguments.get("parameters") or ()


def _limit(arguments: Arguments) -> int:
    limit = arguments.get("limit", _MOST_ROWS)
    if not isinstance(limit, int) or limit < 1:
        raise ToolError(f"sql.query: `limit` is {limit}", "give a whole number of at least 1")
    return limit
