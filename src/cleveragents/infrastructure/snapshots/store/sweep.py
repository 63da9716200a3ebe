"""What nothing needs any more: versions that no kept snapshot sees, contents that nothing names.

In which order: recent rows are poured into the large tables; snapshots go, and versions that no
kept one sees; then contents that nothing names; then the chunk lists of those; then the chunks that
only these named.
Why: a chunk is named by its list, so that it is free only after that. One transaction of the caller
holds it all, and a kill leaves everything as it was.
What is not guaranteed: that the file gets smaller. `PlanStore.compact` sees to that afterwards.
"""

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from cleveragents.infrastructure.snapshots.store.recent_rows import compact


class HistoryTables(NamedTuple):
    """Of paths or of pages: the state of a `key` at a snapshot is its last version up to then."""

    snapshots: str
    versions: str
    key: str


def keep_snapshots(
    db: sqlite3.Connection, tables: HistoryTables, tree: int | str, kept: Collection[int]
) -> None:
    """Delete the snapshots not in `kept`, and the versions that none of the rest sees."""
    db.execute("CREATE TEMP TABLE kept (seq INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO kept VALUES (?)", [(seq,) for seq in kept])
    db.execute(
        f"DELETE FROM {tables.snapshots} WHERE tree=? AND seq NOT IN (SELECT seq FROM kept)",
        (tree,),
    )
    db.execute(_DELETE_UNSEEN.format_map(tables._asdict()), (tree, tree))
    db.execute("DROP TABLE kept")


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


def used_bytes(db: sqlite3.Connection) -> int:
    """Of the whole file, by which one sees what was freed."""
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    return pages * db.execute("PRAGMA page_size").fetchone()[0]


def sweep(db: sqlite3.Connection) -> None:
    """Delete the contents that no version, no chunk list, no side record and no page names."""
    compact(db)
    _sweep_unnamed(db)
    # Chunk lists went with their files; now the chunks that only those named.
    db.execute("DELETE FROM file_chunks WHERE hash NOT IN (SELECT hash FROM content_ids)")
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
