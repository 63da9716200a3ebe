"""The two places of a row: small tables for what was stored lately, and large ones (ADR 0025).

Paths and hashes that change together lie anywhere in a large table, one page each. So new rows
go to a small table, where they lie closer together, and are poured into the large one when many
have gathered. The invariant: what a small table says of a path is newer than what the large one
says, and of two rows the one with the greater generation is.

What was found at a path is one row as long as it is recent: part of the manifest, and a version
of the snapshot `seq`. That is 0 where a look found the state as it was and only its marks are new.
"""

import sqlite3

# More at once fill pages of the large tables by themselves.
MANY = 5000
_ENOUGH = 10_000
STATE = "kind, mode, size, mtime_ns, hash, target, uid, gid"
_MARKED = f"{STATE}, ctime_ns, ino, dev"
NEWEST = f"SELECT tree, path, {_MARKED}, MAX(generation) FROM recent_paths GROUP BY tree, path"


def fits_recent(db: sqlite3.Connection, rows: int) -> bool:
    """Whether so many rows go to a small table; if not, the large ones are ready for them."""
    if rows <= MANY:
        return True
    compact(db)
    return False


def pour_if_many(db: sqlite3.Connection) -> None:
    for table in ("recent_paths", "recent_content_ids"):
        if db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] > _ENOUGH:
            compact(db)


def compact(db: sqlite3.Connection) -> None:
    """Bring everything into the large tables."""
    db.execute(f"INSERT OR REPLACE INTO entries SELECT tree, path, {_MARKED} FROM ({NEWEST})")
    db.execute(
        "DELETE FROM entries WHERE kind=0 AND (tree, path) IN (SELECT tree, path FROM recent_paths)"
    )
    db.execute(f"INSERT INTO versions SELECT tree, seq, path, {STATE} FROM recent_paths WHERE seq")
    db.execute("INSERT INTO content_ids SELECT * FROM recent_content_ids")
    db.execute("DELETE FROM recent_paths")
    db.execute("DELETE FROM recent_content_ids")
