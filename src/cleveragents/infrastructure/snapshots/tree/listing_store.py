"""Keeping the listing of a tree, the paths stored anew since it was taken, and its stat index.

The stat index is made from the manifest, and forgotten with the listing.
"""

import sqlite3
import struct
from collections.abc import Iterable, Mapping

import zstandard
from msgspec import Struct

from cleveragents.infrastructure.files.entry import Kind, ManifestRow
from cleveragents.infrastructure.files.excludes import Excludes, fingerprint
from cleveragents.infrastructure.snapshots.changes.listing import (
    Part,
    TreeListing,
    record_of,
    records,
)
from cleveragents.infrastructure.snapshots.changes.stat_index import (
    CERTAIN,
    FIELDS,
    FolderStamp,
    StatIndex,
    StatIndexDraft,
    index_of,
)
from cleveragents.infrastructure.snapshots.store.recent_rows import NEWEST

# What is kept beside a listing is worth nothing without it.
_TABLES = ("listings", "listing_parts", "touched", "stat_indexes")


class ListingStore(Struct, frozen=True):
    """The invariant: a path is in the manifest as its record says, or it is among the touched."""

    db: sqlite3.Connection
    tree: int

    def load(self, exclude: Excludes) -> TreeListing | None:
        """None if there is none that was taken under these excludes."""
        row = self.db.execute(
            "SELECT spine FROM listings WHERE tree=? AND exclude=?",
            (self.tree, fingerprint(exclude)),
        ).fetchone()
        if row is None:
            return None
        parts = self.db.execute(
            "SELECT tops, text FROM listing_parts WHERE tree=? ORDER BY part", (self.tree,)
        )
        unpack = zstandard.ZstdDecompressor().decompress
        try:
            return TreeListing(
                _split(unpack(row[0])),
                tuple(Part(_split(unpack(tops)), unpack(text)) for tops, text in parts),
            )
        except zstandard.ZstdError:
            return None  # damaged; without it everything is compared

    def touched(self) -> set[bytes]:
        rows = self.db.execute("SELECT paths FROM touched WHERE tree=?", (self.tree,))
        return {path for (paths,) in rows for path in paths.split(b"\0")}

    def note(self, generation: int, paths: Iterable[bytes]) -> None:
        """These are about to be stored anew."""
        told = b"\0".join(paths)
        rows = self.db.execute(
            "UPDATE listings SET touched=touched+? WHERE tree=? RETURNING touched>bytes",
            (len(told), self.tree),
        ).fetchall()
        if not rows or not told:
            return
        if rows[0][0]:
            # One that tells of less than was changed since is not worth its room.
            self._forget()
        else:
            self.db.execute("INSERT INTO touched VALUES (?, ?, ?)", (self.tree, generation, told))

    def keep(
        self, listing: TreeListing, exclude: Excludes, stored: Mapping[bytes, ManifestRow | None]
    ) -> None:
        """Instead of what was kept. `stored` is what becomes of the paths looked at since then."""
        self._forget()
        # Small and quick, and an error if a byte of it is not what was written.
        pack = zstandard.ZstdCompressor(level=1, write_checksum=True).compress
        size = sum(len(part.text) for part in listing.parts)
        spine = pack(b"\0".join(b"/" + path for path in listing.spine))
        self.db.execute(
            "INSERT INTO listings VALUES (?, ?, ?, ?, 0)",
            (self.tree, fingerprint(exclude), spine, size),
        )
        for number, (tops, text) in enumerate(listing.parts):
            told = pack(b"\0".join(b"/" + path for path in tops))
            self.db.execute(
                "INSERT INTO listing_parts VALUES (?, ?, ?, ?)",
                (self.tree, number, told, pack(text)),
            )
        written = {record for part in listing.parts for record in records(part.text)}
        others = [
            path for path, seen in stored.items() if seen is None or record_of(seen) not in written
        ]
        self.note(0, others)

    def _forget(self) -> None:
        for table in _TABLES:
            self.db.execute(f"DELETE FROM {table} WHERE tree=?", (self.tree,))


def _split(told: bytes) -> tuple[bytes, ...]:
    # Each begins with a slash, because the root's own path is empty.
    return tuple(path[1:] for path in told.split(b"\0")) if told else ()


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
