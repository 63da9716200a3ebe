"""Owns asking a database for many rows, and storing many, in few statements.

SQLite reads a statement anew unless its text is one of the last it has seen, and for one of a
thousand values that takes longer than what it does. So the texts here come in a few sizes only.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

_ROWS = 50
_SIZES = (1, 8, 64, 512)


def insert_all(db: sqlite3.Connection, verb: str, rows: Sequence[tuple[object, ...]]) -> None:
    """`verb` is all that comes before the values."""
    if not rows:
        return
    marks = f"({','.join('?' * len(rows[0]))})"
    together = len(rows) - len(rows) % _ROWS
    for start in range(0, together, _ROWS):
        values = tuple(chain.from_iterable(rows[start : start + _ROWS]))
        db.execute(f"{verb} VALUES {','.join((marks,) * _ROWS)}", values)
    db.executemany(f"{verb} VALUES {marks}", rows[together:])


def in_sizes(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """All of them, some at a time; the last one comes more than once to make up a size."""
    start = 0
    while rest := len(values) - start:
        size = next((size for size in _SIZES if size >= rest), _SIZES[-1])
        some = values[start : start + size]
        start += len(some)
        yield [*some, *repeat(some[-1], size - len(some))]
