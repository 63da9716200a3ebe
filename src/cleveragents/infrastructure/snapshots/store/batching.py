"""Asking a database for many rows, and storing many, in few statements.

SQLite reads a statement anew unless its text is one of the last it has seen, and for one of a
thousand values that takes longer than what it does. So the texts here come in a few sizes only.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, count, islice, repeat

_ROWS = 50
_SIZES = (1, 8, 64, 512)


def insert_all(
    db: sqlite3.Connection,
    verb: str,
    rows: Sequence[tuple[object, ...]],
    shared: tuple[object, ...] = (),
) -> None:
    """`verb` is all that comes before the values. Every row begins with the `shared` ones."""
    if not rows:
        return
    width, together = len(rows[0]), len(rows) - len(rows) % _ROWS
    for start in range(0, together, _ROWS):
        values = (*shared, *chain.from_iterable(rows[start : start + _ROWS]))
        db.execute(verb + _values(len(shared), width, _ROWS), values)
    last = ((*shared, *row) for row in rows[together:])
    db.executemany(verb + _values(len(shared), width, 1), last)


@cache
def _values(shared: int, width: int, rows: int) -> str:
    common = [f"?{number}" for number in range(1, shared + 1)]
    own = (range(start, start + width) for start in count(shared + 1, width))
    each = (",".join([*common, *(f"?{number}" for number in row)]) for row in islice(own, rows))
    return " VALUES " + ",".join(f"({row})" for row in each)


def in_sizes(values: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """All of them, some at a time; the last one comes more than once to make up a size, as long as
    that does not more than double the work."""
    start = 0
    while rest := len(values) - start:
        size = next((size for size in _SIZES if rest <= size <= 2 * rest), 0)
        size = size or max(size for size in _SIZES if size <= rest)
        some = values[start : start + size]
        start += len(some)
        yield [*some, *repeat(some[-1], size - len(some))]
