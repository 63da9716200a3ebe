"""The history of a tree: each path's versions by number, and the snapshots over them.

The state of a path at k is its version with the greatest seq up to k; nothing is ever rewritten. So
a snapshot costs what changed, and one that has gone leaves the others as they are: only versions
that no kept snapshot sees are deleted. What differs between two snapshots is found among the paths
with a version in between, however large the tree is.
What is not guaranteed: anything about bytes. A version names a content by its hash, and whether
that is there and whole is asked of the content store.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct

from cleveragents.infrastructure.files.entry import Entry, entry_of
from cleveragents.infrastructure.snapshots.store.batching import in_sizes
from cleveragents.infrastructure.snapshots.store.blob_keys import is_blob_key
from cleveragents.infrastructure.snapshots.store.recent_rows import compact
from cleveragents.infrastructure.snapshots.store.sweep import (
    HistoryTables,
    is_worth_it,
    keep_snapshots,
)

_TABLES = HistoryTables("snapshots", "versions", "path", "size", "recent_paths")
_COLUMNS = "path, kind, mode, size, mtime_ns, hash, target, uid, gid"


class SnapshotRow(Struct, frozen=True, kw_only=True):
    seq: int
    total: int
    state_hash: str
    identity: str
    sandbox_ref: str


class Versions(Struct, frozen=True):
    db: sqlite3.Connection
    tree: int

    def newest(self) -> SnapshotRow | None:
        return self._snapshot("ORDER BY seq DESC LIMIT 1", ())

    def snapshot(self, seq: int) -> SnapshotRow | None:
        return self._snapshot("AND seq=?", (seq,))

    def add_snapshot(self, row: SnapshotRow, side: dict[str, bytes]) -> None:
        self.db.execute(
            "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?)",
            (
                self.tree,
                row.seq,
                row.total.to_bytes(32, "big"),
                row.state_hash,
                row.identity,
                row.sandbox_ref,
            ),
        )
        self._add_side(row.seq, side)

    def replace_side(self, seq: int, side: dict[str, bytes]) -> None:
        values = (self.tree, seq)
        self.db.execute("DELETE FROM side_contents WHERE tree=? AND seq=?", values)
        self._add_side(seq, side)

    def _add_side(self, seq: int, side: dict[str, bytes]) -> None:
        self.db.executemany(
            "INSERT INTO side_contents VALUES (?, ?, ?, ?)",
            [(self.tree, seq, name, key) for name, key in side.items()],
        )

    def side_contents(self, seq: int) -> dict[str, bytes]:
        rows = self.db.execute(
            "SELECT name, hash FROM side_contents WHERE tree=? AND seq=?", (self.tree, seq)
        )
        return dict(rows.fetchall())

    def at(self, path: bytes, seq: int) -> Entry | None:
        for table, order in (("recent_paths", "generation"), ("versions", "seq")):
            row = self.db.execute(
                f"SELECT {_COLUMNS} FROM {table} WHERE tree=? AND path=? AND seq BETWEEN 1 AND ?"
                f" ORDER BY {order} DESC LIMIT 1",
                (self.tree, path, seq),
            ).fetchone()
            if row is not None:
                return entry_of(row) if row[1] else None
        return None

    def at_all(self, paths: Collection[bytes], seq: int) -> dict[bytes, Entry]:
        """The same for many; one that is not there then is left out."""
        rows: dict[bytes, tuple[Any, ...]] = {}
        missing = list(paths)
        for table, order in (("recent_paths", "generation"), ("versions", "seq")):
            for some in in_sizes(missing):
                found = self.db.execute(*_last_of(table, order, self.tree, seq, some))
                rows.update((row[0], row) for row in found)
            missing = [path for path in missing if path not in rows]
        return {path: entry_of(row) for path, row in rows.items() if row[1]}

    def first_blobs(self, paths: Collection[bytes]) -> dict[bytes, bytes]:
        """Of these, the names of first contents that are those of blobs (`blob_keys.py`)."""
        found: dict[bytes, bytes] = {}
        for some in in_sizes(list(paths)):
            marks = ",".join("?" * len(some))
            for table in ("versions", "recent_paths"):
                rows = self.db.execute(
                    f"SELECT path, hash FROM {table} WHERE tree=? AND path IN ({marks}) AND seq=1",
                    (self.tree, *some),
                )
                found.update((path, key) for path, key in rows if is_blob_key(key))
        return found

    def state(self, seq: int, below: bytes | None = None) -> Iterator[Entry]:
        """All entries at `seq` in path order, or those below one folder."""
        where, values = "tree=? AND seq BETWEEN 1 AND ?", (self.tree, seq)
        if below is not None:
            # b"0" is what follows b"/".
            where, values = where + " AND path>? AND path<?", (*values, below + b"/", below + b"0")
        rows = self.db.execute(
            f"SELECT {_COLUMNS}, seq FROM versions WHERE {where} UNION ALL"
            f" SELECT {_COLUMNS}, seq FROM recent_paths WHERE {where} ORDER BY path, seq",
            values * 2,
        )
        last = None
        for row in rows:
            if last is not None and last[0] != row[0] and last[1]:
                yield entry_of(last)
            last = row
        if last is not None and last[1]:
            yield entry_of(last)

    def history(self, until: int) -> Iterator[tuple[int, Entry]]:
        """Every version up to `until` with its number, the oldest first; one that is gone too."""
        rows = self.db.execute(
            f"SELECT {_COLUMNS}, seq, 0 AS generation FROM versions"
            f" WHERE tree=? AND seq BETWEEN 1 AND ? UNION ALL"
            f" SELECT {_COLUMNS}, seq, generation FROM recent_paths"
            f" WHERE tree=? AND seq BETWEEN 1 AND ? ORDER BY seq, generation",
            (self.tree, until) * 2,
        )
        return ((row[-2], entry_of(row)) for row in rows)

    def touched(self, after: int, until: int) -> set[bytes]:
        """Paths with a version in (after, until]: all that can differ between the two."""
        # Not DISTINCT: the planner would then scan the whole primary key.
        rows = self.db.execute(
            "SELECT path FROM versions WHERE tree=? AND seq>? AND seq<=? UNION ALL"
            " SELECT path FROM recent_paths WHERE tree=? AND seq>? AND seq<=?",
            (self.tree, after, until) * 2,
        )
        return {path for (path,) in rows}

    def are_worth_freeing(self, kept: Collection[int]) -> bool:
        """Whether all snapshots but these hold so much that `keep_only` pays."""
        return is_worth_it(self.db, _TABLES, self.tree, kept)

    def keep_only(self, kept: Collection[int]) -> None:
        """Delete the snapshots not in `kept`, and the versions that none of the rest sees."""
        compact(self.db)
        keep_snapshots(self.db, _TABLES, self.tree, kept)
        # A path that begins with not being there says nothing.
        self.db.execute(
            "DELETE FROM versions AS v WHERE tree=? AND kind=0 AND NOT EXISTS (SELECT 1 FROM"
            " versions w WHERE w.tree=v.tree AND w.path=v.path AND w.seq<v.seq)",
            (self.tree,),
        )

    def _snapshot(self, condition: str, values: tuple[int, ...]) -> SnapshotRow | None:
        row = self.db.execute(
            "SELECT seq, total, state_hash, identity, sandbox_ref FROM snapshots"
            f" WHERE tree=? {condition}",
            (self.tree, *values),
        ).fetchone()
        if row is None:
            return None
        seq, total, state_hash, identity, sandbox_ref = row
        return SnapshotRow(
            seq=seq,
            total=int.from_bytes(total, "big"),
            state_hash=state_hash,
            identity=identity,
            sandbox_ref=sandbox_ref,
        )


class FirstBlobs:
    """By path, the name of its first content, where that is a blob's. Bound to one transaction."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._read: dict[bytes, bytes | None] = {}

    def prefetch(self, paths: Collection[bytes]) -> None:
        missing = [path for path in paths if path not in self._read]
        self._read.update(dict.fromkeys(missing))
        self._read.update(self._versions.first_blobs(missing))

    def get(self, path: bytes) -> bytes | None:
        if path not in self._read:
            self.prefetch((path,))
        return self._read[path]


def _last_of(
    table: str, order: str, tree: int, seq: int, paths: Sequence[bytes]
) -> tuple[str, Sequence[object]]:
    """Of each path the last row up to `seq`."""
    until = "tree=? AND path=it AND seq BETWEEN 1 AND ?"
    return (
        f"WITH wanted(it) AS (VALUES {','.join(('(?)',) * len(paths))})"
        f" SELECT {_COLUMNS} FROM wanted CROSS JOIN {table} ON {until} AND {order}="
        f"(SELECT MAX({order}) FROM {table} WHERE {until})",
        (*paths, tree, seq, tree, seq),
    )
