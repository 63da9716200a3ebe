"""Keeping the listing of a tree, and the paths that were stored anew since it was taken."""

import sqlite3
from collections.abc import Iterable, Mapping

import zstandard
from msgspec import Struct

from cleveragents.infrastructure.files.entry import ManifestRow
from cleveragents.infrastructure.files.excludes import Excludes, fingerprint
from cleveragents.infrastructure.snapshots.changes.listing import (
    Part,
    TreeListing,
    record_of,
    records,
)

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
