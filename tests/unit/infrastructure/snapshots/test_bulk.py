"""Many rows in few statements are the same rows, however many there are."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.infrastructure.snapshots.store.batching import in_sizes, insert_all

COUNTS = st.sampled_from([0, 1, 7, 8, 9, 49, 50, 51, 64, 65, 100, 150, 511, 512, 513, 1200])


def _table(rows: list[tuple[object, ...]]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE t (path BLOB PRIMARY KEY, size INTEGER NOT NULL)")
    insert_all(db, "INSERT INTO t", rows)
    return db


def _names(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@given(stored=COUNTS, asked=COUNTS)
def test_each_row_is_stored_once_and_found_by_its_name(stored: int, asked: int) -> None:
    rows = [(name, len(name)) for name in _names(stored)]
    with closing(_table(list(rows))) as db:
        found: list[tuple[bytes, int]] = []
        for values in in_sizes(_names(asked)):
            marks = ",".join("?" * len(values))
            found += db.execute(f"SELECT path, size FROM t WHERE path IN ({marks})", values)

        assert db.execute("SELECT COUNT(*) FROM t").fetchone() == (stored,)
    assert sorted(found) == sorted(rows[:asked])


@pytest.mark.parametrize("count", [2, 60])
def test_a_row_that_the_table_refuses_is_told(count: int) -> None:
    rows = [(name, 1) for name in _names(count)]
    with closing(_table([])) as db, pytest.raises(sqlite3.IntegrityError):
        insert_all(db, "INSERT INTO t", [*rows, rows[-1]])


def test_questions_come_in_few_sizes() -> None:
    sizes = {len(values) for count in range(1, 1100) for values in in_sizes(_names(count))}

    assert len(sizes) == 4
