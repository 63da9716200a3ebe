"""Owns rows as people read them: an aligned table of text."""

from collections.abc import Sequence
from typing import Any

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
