"""Owns what is known of a sandbox as it is now: its manifest, mirror of the newest snapshot."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cleveragents.infrastructure.snapshots.entry import Entry, Kind, Seen


@dataclass(slots=True)
class Manifest:
    """All paths with their marks. `generation` tells whether the stored one has moved on."""

    generation: int = 0
    fingerprint: str = ""
    memory: str | None = None
    seen: dict[bytes, Seen] = field(default_factory=dict[bytes, Seen])


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """Paths looked at again, with what is there now."""

    now: Mapping[bytes, Seen | None]

    def entry(self, path: bytes, known: Mapping[bytes, Seen]) -> Entry | None:
        seen = self.now[path] if path in self.now else known.get(path)
        return seen.entry if seen else None


@dataclass(frozen=True, slots=True)
class Present:
    db: sqlite3.Connection
    tree: str

    def load(self, cached: Manifest | None) -> Manifest:
        """The stored manifest; `cached` itself if that is still it."""
        row = self.db.execute(
            "SELECT generation, fingerprint, memory FROM trees WHERE tree=?", (self.tree,)
        ).fetchone()
        if row is None:
            return Manifest()
        generation, fingerprint, memory = row
        if cached is not None and cached.generation == generation:
            return cached
        return Manifest(generation, fingerprint, memory, self._entries())

    def save(self, before: Manifest, delta: Delta, fingerprint: str, memory: str) -> Manifest:
        """Write what changed; the result is true once the transaction is committed."""
        self.db.executemany(
            "DELETE FROM entries WHERE tree=? AND path=?",
            [(self.tree, path) for path, seen in delta.now.items() if seen is None],
        )
        self.db.executemany(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._row(seen) for seen in delta.now.values() if seen is not None),
        )
        self.db.execute(
            "INSERT OR REPLACE INTO trees VALUES (?, ?, ?, ?)",
            (self.tree, before.generation + 1, fingerprint, memory),
        )
        return Manifest(
            before.generation + 1, fingerprint, memory, _merged(before.seen, delta.now.items())
        )

    def _row(self, seen: Seen) -> tuple[str | bytes | int, ...]:
        e = seen.entry
        return (
            *(self.tree, e.path, e.kind, e.mode, e.size, e.mtime_ns, e.hash, e.target),
            *(e.uid, e.gid, seen.ctime_ns, seen.ino, seen.dev),
        )

    def _entries(self) -> dict[bytes, Seen]:
        rows = self.db.execute(
            "SELECT path, kind, mode, size, mtime_ns, hash, target, uid, gid, ctime_ns, ino, dev"
            " FROM entries WHERE tree=?",
            (self.tree,),
        )
        return {row[0]: _seen(row) for row in rows}


def _seen(row: tuple[bytes, int, int, int, int, bytes, bytes, int, int, int, int, int]) -> Seen:
    path, kind, mode, size, mtime_ns, key, target, uid, gid, ctime_ns, ino, dev = row
    entry = Entry(
        path=path,
        kind=Kind(kind),
        mode=mode,
        size=size,
        mtime_ns=mtime_ns,
        hash=key,
        target=target,
        uid=uid,
        gid=gid,
    )
    return Seen(entry=entry, ctime_ns=ctime_ns, ino=ino, dev=dev)


def _merged(
    old: dict[bytes, Seen], changes: Iterable[tuple[bytes, Seen | None]]
) -> dict[bytes, Seen]:
    # A copy: the transaction may yet fail, and the old one must then still be true.
    merged = dict(old)
    for path, seen in changes:
        if seen is None:
            merged.pop(path, None)
        else:
            merged[path] = seen
    return merged
