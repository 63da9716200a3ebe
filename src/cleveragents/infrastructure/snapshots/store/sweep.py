"""Contents that nothing names any more: found, and deleted."""

import sqlite3

from cleveragents.infrastructure.snapshots.store.recent_rows import compact


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
