"""Keeping the stat index of a tree: made from its manifest, forgotten with its listing."""

import sqlite3
import struct

import zstandard
from msgspec import Struct

from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.files.excludes import Excludes, fingerprint
from cleveragents.infrastructure.snapshots.changes.stat_index import (
    CERTAIN,
    FIELDS,
    FolderStamp,
    StatIndex,
    StatIndexDraft,
    index_of,
)
from cleveragents.infrastructure.snapshots.store.recent_rows import NEWEST

# Of more than so many, or of a larger share, looking at each takes longer than listing all.
_MOST_YOUNG = 500
_SHARE = 20
# The number of a folder, that of its device, and when it last changed.
_NUMBERS = struct.Struct("<QQq")
_KINDS = f"kind IN ({int(Kind.FILE)}, {int(Kind.LINK)})"
_FILES = f"""
    SELECT * FROM ({NEWEST}) WHERE tree=:tree AND {_KINDS} UNION ALL
    SELECT *, 0 FROM entries WHERE tree=:tree AND {_KINDS}
        AND path NOT IN (SELECT path FROM recent_paths WHERE tree=:tree)
"""


class StatIndexStore(Struct, frozen=True):
    """The invariant: what it tells of a path was true when it was made, and whatever was
    stored since then is among the touched paths of the listing."""

    db: sqlite3.Connection
    tree: int

    def load(self, exclude: Excludes) -> StatIndex | None:
        """None if there is none that was made under these excludes."""
        row = self.db.execute(
            "SELECT border, folders, marks, first, second "
            "FROM stat_indexes JOIN listings USING (tree)"
            " WHERE tree=? AND exclude=?",
            (self.tree, fingerprint(exclude)),
        ).fetchone()
        if row is None:
            return None
        border, *packed = row
        try:
            paths, numbers, *halves = map(zstandard.ZstdDecompressor().decompress, packed)
            return StatIndex(_marks(paths, numbers), border, (halves[0], halves[1]))
        except zstandard.ZstdError:
            return None  # damaged; without it everything is listed

    def keep(self, draft: StatIndexDraft) -> None:
        """Of what the manifest tells now, if most of it is old enough."""
        values = {"tree": self.tree, "since_ns": draft.since_ns}
        ask = f"SELECT COUNT(*), IFNULL(SUM(NOT {CERTAIN}), 0) FROM ({_FILES})"
        count, young = self.db.execute(ask, values).fetchone()
        if young > min(_MOST_YOUNG, count // _SHARE):
            return
        rows = self.db.execute(f"SELECT {FIELDS} FROM ({_FILES}) ORDER BY path", values).fetchall()
        middle = count // 2
        border = rows[middle][0] if rows else b""
        paths = b"\0".join(mark.path for mark in draft.folders)
        numbers = b"".join(_NUMBERS.pack(*mark[1:]) for mark in draft.folders)
        pack = zstandard.ZstdCompressor(level=1, write_checksum=True).compress
        blobs = (paths, numbers, index_of(rows[:middle]), index_of(rows[middle:]))
        self.db.execute(
            "INSERT OR REPLACE INTO stat_indexes VALUES (?, ?, ?, ?, ?, ?)",
            (self.tree, border, *map(pack, blobs)),
        )


def _marks(paths: bytes, numbers: bytes) -> list[FolderStamp]:
    unpacked = _NUMBERS.iter_unpack(numbers)
    return [
        FolderStamp(path, *found) for path, found in zip(paths.split(b"\0"), unpacked, strict=True)
    ]
