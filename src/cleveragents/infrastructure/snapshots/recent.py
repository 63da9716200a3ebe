"""Owns the two places of a row: small tables for what was stored lately, and large ones (ADR 0025).

Paths and hashes that change together lie anywhere in a large table, one page each. So new rows
go to a table of their own, where they lie together, and are poured into the large one when many
have gathered. The invariant: what a recent table says of a path is newer than what the large one
says.
"""

import sqlite3

RECENT = "recent_"
# More at once fill pages of the large tables by themselves.
MANY = 5000
_ENOUGH = 10_000
_TABLES = ("content_ids", "versions", "entries")


def place_of(db: sqlite3.Connection, table: str, rows: int) -> str:
    """The table in which to store so many rows."""
    if rows <= MANY:
        return RECENT + table
    pour(db)
    return table


def pour_if_many(db: sqlite3.Connection) -> None:
    counts = (db.execute(f"SELECT COUNT(*) FROM {RECENT}{table}").fetchone() for table in _TABLES)
    if any(count > _ENOUGH for (count,) in counts):
        pour(db)


def pour(db: sqlite3.Connection) -> None:
    """Bring everything into the large tables."""
    db.execute(
        "DELETE FROM entries WHERE (tree, path) IN"
        " (SELECT tree, path FROM recent_entries WHERE kind=0)"
    )
    db.execute("DELETE FROM recent_entries WHERE kind=0")
    db.execute("INSERT OR REPLACE INTO entries SELECT * FROM recent_entries")
    db.execute("INSERT INTO versions SELECT * FROM recent_versions ORDER BY tree, path, seq")
    db.execute("INSERT INTO content_ids SELECT * FROM recent_content_ids")
    for table in _TABLES:
        db.execute(f"DELETE FROM {RECENT}{table}")
