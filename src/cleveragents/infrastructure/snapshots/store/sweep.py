"""What nothing needs any more: versions that no kept snapshot sees, contents that nothing names.

In which order: recent rows are poured into the large tables; snapshots go, and versions that no
kept one sees; then contents that nothing names; then the chunk lists of those; then the chunks that
only these named.
Why: a chunk is named by its list, so that it is free only after that. One transaction of the caller
holds it all, and a kill leaves everything as it was.
What is not guaranteed: that the file gets smaller. `PlanStore.compact` sees to that afterwards.
"""

import sqlite3
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from cleveragents.infrastructure.snapshots.store.batching import insert_all
from cleveragents.infrastructure.snapshots.store.recent_rows import compact

# A sweep looks at every row of the file, so that it waits until so much of it may be free.
_WORTH_SHARE = 8
_WORTH_BYTES = 64 * 1024 * 1024
_ROW_BYTES = 200


class HistoryTables(NamedTuple):
    """Of paths or of pages: the state of a `key` at a snapshot is its last version up to then.

    `recent` is where the newest of the versions may be, and `size` how many bytes one is of.
    """

    snapshots: str
    versions: str
    key: str
    size: str
    recent: str | None = None

    @property
    def holding_versions(self) -> Sequence[str]:
        return [self.versions, *filter(None, (self.recent,))]


def keep_snapshots(
    db: sqlite3.Connection, tables: HistoryTables, tree: int | str, kept: Collection[int]
) -> None:
    """Delete the snapshots not in `kept`, and the versions that none of the rest sees."""
    with _kept_seqs(db, kept):
        db.execute(
            f"DELETE FROM {tables.snapshots} WHERE tree=? AND seq NOT IN (SELECT seq FROM kept)",
            (tree,),
        )
        db.execute(_DELETE_UNSEEN.format_map(tables._asdict()), (tree, tree))


def _kept_seqs(db: sqlite3.Connection, kept: Collection[int]) -> AbstractContextManager[None]:
    return _numbers(db, "kept (seq INTEGER PRIMARY KEY)", [(seq,) for seq in kept])


@contextmanager
def _numbers(
    db: sqlite3.Connection, table: str, rows: Sequence[tuple[int, ...]]
) -> Generator[None]:
    """Meanwhile these are in a table of their own. Should that fail, it goes with the connection,
    which nobody uses again then."""
    name = table.partition(" ")[0]
    db.execute(f"CREATE TEMP TABLE {table}")
    insert_all(db, f"INSERT INTO {name}", rows)
    yield
    db.execute(f"DROP TABLE {name}")


_DELETE_UNSEEN = """
DELETE FROM {versions} WHERE tree=? AND ({key}, seq) IN (
    SELECT {key}, seq FROM (
        SELECT {key}, seq, LEAD(seq) OVER (PARTITION BY {key} ORDER BY seq) AS next
        FROM {versions} WHERE tree=?
    ) AS v WHERE NOT EXISTS (
        SELECT 1 FROM kept WHERE kept.seq>=v.seq AND kept.seq<COALESCE(v.next, 1 << 62)
    )
)
"""


def is_worth_it(
    db: sqlite3.Connection, tables: HistoryTables, tree: int | str, kept: Collection[int]
) -> bool:
    """Whether the snapshots not in `kept` may hold enough of the file for a sweep to pay.

    What they hold alone began after the kept one before them, so only that is looked at, and not
    the whole history. It may be counted as more than it is, and never as less.
    """
    rows = db.execute(f"SELECT seq FROM {tables.snapshots} WHERE tree=? ORDER BY seq", (tree,))
    runs = list(_runs([seq for (seq,) in rows], kept))
    if not runs:
        return False
    with (
        _kept_seqs(db, kept),
        _numbers(db, "runs (until INTEGER PRIMARY KEY, after INTEGER)", runs),
    ):
        # First as if nobody else had these contents: that takes no look at others.
        return all(
            _pays(db, _bytes_going(db, of_row, tables, tree))
            for of_row in (tables.size, _unshared(tables))
        )


def _unshared(tables: HistoryTables) -> str:
    """The size of what no kept snapshot has brought to the same path."""
    same = f"w.tree=v.tree AND w.{tables.key}=v.{tables.key} AND w.hash=v.hash"
    shared = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} AS w WHERE {same} AND w.seq IN (SELECT seq FROM kept))"
        for table in tables.holding_versions
    )
    return f"CASE WHEN {shared} THEN 0 ELSE {tables.size} END"


def _bytes_going(
    db: sqlite3.Connection, of_row: str, tables: HistoryTables, tree: int | str
) -> int:
    sums = [
        # By their numbers, in the index that the large table has of them; the small one has none.
        f"runs CROSS JOIN {tables.versions} AS v ON v.tree=? AND v.seq>after AND v.seq<=until",
        *(
            f"{table} AS v WHERE v.tree=? AND v.seq>"
            "(SELECT after FROM runs WHERE until>=v.seq ORDER BY until LIMIT 1)"
            for table in tables.holding_versions[1:]
        ),
    ]
    ask = f"SELECT IFNULL(SUM({of_row} + {_ROW_BYTES}), 0) FROM "
    return sum(db.execute(ask + rows, (tree,)).fetchone()[0] for rows in sums)


def _pays(db: sqlite3.Connection, free: int) -> bool:
    return free >= _WORTH_BYTES or free * _WORTH_SHARE >= used_bytes(db) or _is_tight(db)


def _is_tight(db: sqlite3.Connection) -> bool:
    """Whether half of the room that the store may take is taken (`disk_limits.keep_within`)."""
    most = db.execute("PRAGMA max_page_count").fetchone()[0]
    return db.execute("PRAGMA page_count").fetchone()[0] * 2 > most


def _runs(seqs: Sequence[int], kept: Collection[int]) -> Iterator[tuple[int, int]]:
    """Each row of snapshots that go: the last of it, and the kept one before it."""
    after, last = 0, None
    for seq in seqs:
        if seq not in kept:
            last = seq
            continue
        if last is not None:
            yield last, after
        after, last = seq, None
    if last is not None:
        yield last, after


def used_bytes(db: sqlite3.Connection) -> int:
    """Of the whole file, by which one sees what was freed."""
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    return pages * db.execute("PRAGMA page_size").fetchone()[0]


def sweep(db: sqlite3.Connection) -> None:
    """Delete the contents that no version, no chunk list, no side record and no page names."""
    compact(db)
    _sweep_unnamed(db)
    # Chunk lists went with their files; now the chunks that only those named.
    gone = "DELETE FROM file_chunks WHERE hash NOT IN (SELECT hash FROM content_ids)"
    if db.execute(gone).rowcount:
        _sweep_unnamed(db)


_UNNAMED = """
hash NOT IN (SELECT hash FROM versions) AND hash NOT IN (SELECT hash FROM side_contents)
AND hash NOT IN (SELECT chunk FROM file_chunks) AND hash NOT IN (SELECT hash FROM page_versions)
"""


def _sweep_unnamed(db: sqlite3.Connection) -> None:
    db.execute(f"DELETE FROM git_contents WHERE {_UNNAMED}")
    db.execute(f"CREATE TEMP TABLE unnamed AS SELECT hash, id FROM content_ids WHERE {_UNNAMED}")
    db.execute("DELETE FROM contents WHERE id IN (SELECT id FROM unnamed)")
    db.execute("DELETE FROM content_ids WHERE hash IN (SELECT hash FROM unnamed)")
    db.execute("DROP TABLE unnamed")
