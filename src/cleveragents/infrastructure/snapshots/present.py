"""Owns what is known of a sandbox as it is now: its manifest, mirror of the newest snapshot."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from cleveragents.infrastructure.snapshots.entry import Entry, Seen


@dataclass(slots=True)
class Manifest:
    """All paths with their marks. `generation` tells whether the stored one has moved on."""

    generation: int = 0
    fingerprint: str = ""
    memory: str | None = None
    seen: dict[bytes, Seen] = field(default_factory=dict[bytes, Seen])

    def move_on(self, saved: "Saved") -> None:
        """Take over what was saved, in place: a copy would cost as much as the tree is large."""
        for path, seen in saved.delta.now.items():
            if seen is None:
                self.seen.pop(path, None)
            else:
                self.seen[path] = seen
        self.fingerprint, self.memory = saved.fingerprint, saved.memory
        # Last: cut short before it, this is not the stored generation, and is read anew.
        self.generation = saved.generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """Paths looked at again, with what is there now."""

    now: Mapping[bytes, Seen | None]

    def entry(self, path: bytes, known: Mapping[bytes, Seen]) -> Entry | None:
        seen = self.now[path] if path in self.now else known.get(path)
        return seen.entry if seen else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What a manifest becomes once the transaction that saved it is committed."""

    generation: int
    fingerprint: str
    memory: str
    delta: Delta


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

    def save(self, before: Manifest, delta: Delta, fingerprint: str, memory: str) -> Saved:
        """Write what changed; the result is true once the transaction is committed."""
        self.db.executemany(
            "DELETE FROM entries WHERE tree=? AND path=?",
            [(self.tree, path) for path, seen in delta.now.items() if seen is None],
        )
        self.db.executemany(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((self.tree, *seen) for seen in delta.now.values() if seen is not None),
        )
        self.db.execute(
            "INSERT OR REPLACE INTO trees VALUES (?, ?, ?, ?)",
            (self.tree, before.generation + 1, fingerprint, memory),
        )
        return Saved(
            generation=before.generation + 1, fingerprint=fingerprint, memory=memory, delta=delta
        )

    def below(self, folder: bytes) -> list[bytes]:
        """The paths below a folder."""
        # b"0" is what follows b"/".
        rows = self.db.execute(
            "SELECT path FROM entries WHERE tree=? AND path>? AND path<?",
            (self.tree, folder + b"/", folder + b"0"),
        )
        return [path for (path,) in rows]

    def _entries(self) -> dict[bytes, Seen]:
        rows = self.db.execute(
            "SELECT path, kind, mode, size, mtime_ns, hash, target, uid, gid, ctime_ns, ino, dev"
            " FROM entries WHERE tree=?",
            (self.tree,),
        )
        return {seen.path: seen for seen in map(Seen._make, rows)}
