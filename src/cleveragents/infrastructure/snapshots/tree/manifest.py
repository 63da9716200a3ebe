"""What is known of a sandbox as it is now: its manifest, mirror of the newest snapshot.

What: a row per path, with its state and the marks by which a later look tells that it is the same.
A row is asked of the small table first, and of the large one if that has none: what the small one
says is newer (`recent_rows.py`). A path that is gone has a row that says so, or an older one would
be believed. What was read is kept until the next transaction, since others may write in between.
`generation` moves with every save, so that a process sees that another one has saved since; the one
in memory moves on after the commit, and not before.
What is not guaranteed: that marks hold. A row whose time is NEVER promises nothing, and after a
restart of the machine no row is believed until the tree was read (`boots.py`).
"""

import sqlite3
from collections.abc import (
    Collection,
    Container,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import NamedTuple

from msgspec import Struct

from cleveragents.infrastructure.files.entry import NEVER, Entry, Kind, ManifestRow
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.snapshots.changes.listing import TreeListing
from cleveragents.infrastructure.snapshots.changes.stat_index import StatIndexDraft
from cleveragents.infrastructure.snapshots.store.batching import in_sizes, insert_all
from cleveragents.infrastructure.snapshots.store.recent_rows import STATE, fits_recent
from cleveragents.infrastructure.snapshots.tree.listing_store import ListingStore, StatIndexStore

_COLUMNS = "path, kind, mode, size, mtime_ns, hash, target, uid, gid, ctime_ns, ino, dev"


class LazyManifest(Mapping[bytes, ManifestRow]):
    """What a tree was when it was last looked at. Bound to one transaction after the other.

    What was read is kept until the next one begins: so much and no more is certain to be true.
    """

    def __init__(self) -> None:
        self._tree = 0
        self._db: sqlite3.Connection | None = None
        self._believed = True
        self._read: dict[bytes, ManifestRow | None] = {}
        self._complete = False

    def bind(self, db: sqlite3.Connection, tree: int, *, believed: bool = True) -> None:
        """Unless the marks are `believed`, every path is one that may have changed."""
        self._db, self._tree, self._believed = db, tree, believed
        self._read, self._complete = {}, False

    def __getitem__(self, path: bytes) -> ManifestRow:
        seen = self.get(path)
        if seen is None:
            raise KeyError(path)
        return seen

    def get(self, path: bytes, default: ManifestRow | None = None) -> ManifestRow | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        read = self._read
        if path not in read and not self._complete:
            self.prefetch((path,))
        return read.get(path) or default

    def __contains__(self, path: object) -> bool:
        return isinstance(path, bytes) and self.get(path) is not None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._everything())

    def __len__(self) -> int:
        return len(self._everything())

    def items(self) -> ItemsView[bytes, ManifestRow]:
        return self._everything().items()

    def prefetch(self, paths: Collection[bytes]) -> Mapping[bytes, ManifestRow | None]:
        """One question for many paths costs a fifth of one for each. What it gives back tells of
        these, and perhaps of others."""
        if self._complete:
            return self._read
        missing = [path for path in paths if path not in self._read]
        for question in (_newest, _stored):
            for some in in_sizes(missing):
                self._note(*question(self._tree, some))
            missing = [path for path in missing if path not in self._read]
        self._read.update(dict.fromkeys(missing))
        return self._read

    def _everything(self) -> dict[bytes, ManifestRow]:
        if not self._complete:
            self._read = {}
            for rest in (
                "entries WHERE tree=?",
                "recent_paths WHERE tree=? ORDER BY path, generation",
            ):
                self._note(f"SELECT {_COLUMNS} FROM {rest}", (self._tree,))
            self._complete = True
        return {path: seen for path, seen in self._read.items() if seen is not None}

    def _note(self, question: str, values: Sequence[object]) -> None:
        if self._db is None:
            return  # a tree that nothing is known of yet
        rows = self._db.execute(question, values)
        found = {row[0]: ManifestRow._make(row) if row[1] else None for row in rows}
        if not self._believed:
            found = {p: seen and seen._replace(ctime_ns=NEVER) for p, seen in found.items()}
        self._read.update(found)


def _newest(tree: int, paths: Sequence[bytes]) -> tuple[str, Sequence[object]]:
    """Of all that was found at a path lately, the last."""
    return (
        f"WITH wanted(it) AS (VALUES {','.join(('(?)',) * len(paths))})"
        f" SELECT {_COLUMNS} FROM wanted JOIN recent_paths ON tree=? AND path=it AND generation="
        "(SELECT MAX(generation) FROM recent_paths WHERE tree=? AND path=it)",
        (*paths, tree, tree),
    )


def _stored(tree: int, paths: Sequence[bytes]) -> tuple[str, Sequence[object]]:
    marks = ",".join("?" * len(paths))
    return f"SELECT {_COLUMNS} FROM entries WHERE tree=? AND path IN ({marks})", (tree, *paths)


_GONE = int(Kind.GONE)


class Manifest(Struct):
    """All paths with their marks. `generation` tells whether the stored one has moved on. `fresh`
    is what its last transaction has stored."""

    seen: LazyManifest
    generation: int = 0
    fingerprint: str = ""
    fresh: "JustStored | None" = None

    def move_on(self, saved: "Saved") -> None:
        """Take over what was saved, in place: whoever knows this one knows the next."""
        self.generation, self.fingerprint = saved.generation, saved.fingerprint


class JustStored(Struct, frozen=True):
    """Contents that this connection has put into the file, to which nobody has written since: what
    was read and hashed for that need not be read again.

    `version` is SQLite's, which moves when anybody else writes.
    """

    keys: frozenset[bytes]
    db: sqlite3.Connection
    version: int

    @classmethod
    def by(cls, db: sqlite3.Connection, keys: Iterable[bytes]) -> "JustStored":
        return cls(frozenset(keys), db, _data_version(db))

    def still(self, db: sqlite3.Connection) -> Collection[bytes]:
        unchanged = db is self.db and _data_version(db) == self.version
        return self.keys if unchanged else frozenset()


def _data_version(db: sqlite3.Connection) -> int:
    return db.execute("PRAGMA data_version").fetchone()[0]


class Delta(Struct, frozen=True, kw_only=True):
    """Paths looked at again, with what is there now; `listing` and `stat_index` as in Candidates.

    `told` are paths of which the listing and `now` say the same wherever anything is certain.
    """

    now: Mapping[bytes, ManifestRow | None]
    listing: TreeListing | None = None
    stat_index: StatIndexDraft | None = None
    told: Container[bytes] = ()

    def doubtful(self) -> Mapping[bytes, ManifestRow | None]:
        """What has to be compared with the listing."""
        if not self.told:
            return self.now
        return {
            path: seen
            for path, seen in self.now.items()
            if path not in self.told or (seen and seen.ctime_ns == NEVER)
        }

    def entry(self, path: bytes, known: Mapping[bytes, ManifestRow]) -> Entry | None:
        seen = self.now[path] if path in self.now else known.get(path)
        return seen.entry if seen else None


class NewVersions(NamedTuple):
    """Of the paths looked at, these have another state from the snapshot `seq` on."""

    seq: int
    paths: Container[bytes]


class Saved(Struct, frozen=True, kw_only=True):
    """What a manifest becomes once the transaction that saved it is committed."""

    generation: int
    fingerprint: str


class ManifestTable(Struct, frozen=True):
    db: sqlite3.Connection
    tree: int

    def load(self, cached: Manifest | None, *, believed: bool) -> Manifest:
        """The stored manifest; `cached` itself if that is still it."""
        row = self.db.execute(
            "SELECT generation, fingerprint FROM trees WHERE tree=?", (self.tree,)
        ).fetchone()
        generation, fingerprint = row or (0, "")
        if cached is None or cached.generation != generation:
            cached = Manifest(LazyManifest(), generation, fingerprint)
        cached.seen.bind(self.db, self.tree, believed=believed)
        return cached

    def save(
        self,
        before: Manifest,
        delta: Delta,
        versions: NewVersions,
        exclude: Excludes,
        fingerprint: str,
    ) -> Saved:
        """Write what was found; the result is true once the transaction is committed."""
        generation = before.generation + 1
        listings = ListingStore(self.db, self.tree)
        if delta.listing is not None:
            listings.keep(delta.listing, exclude, delta.doubtful())
        else:
            listings.note(generation, delta.now)
        # One that is gone is said to be so, because an older row may say something else.
        now = [seen or ManifestRow(path, _GONE) for path, seen in delta.now.items()]
        new = [seen for seen in now if seen[0] in versions.paths]
        if fits_recent(self.db, len(now)):
            self._save_few(generation, versions.seq, new)
            self._save_few(generation, 0, [seen for seen in now if seen[0] not in versions.paths])
        else:
            self._save_many(now)
            self._add_many(versions.seq, new, begins=not before.generation)
        if delta.stat_index is not None:
            StatIndexStore(self.db, self.tree).keep(delta.stat_index)
        self.db.execute(
            "UPDATE trees SET generation=?, fingerprint=? WHERE tree=?",
            (generation, fingerprint, self.tree),
        )
        return Saved(generation=generation, fingerprint=fingerprint)

    def _save_few(self, generation: int, seq: int, now: Sequence[ManifestRow]) -> None:
        insert_all(self.db, "INSERT INTO recent_paths", now, (self.tree, generation, seq))

    def _save_many(self, now: Sequence[ManifestRow]) -> None:
        now = sorted(now)  # in the order of the table, so that its pages are filled one by one
        insert_all(self.db, "INSERT OR REPLACE INTO entries", now, (self.tree,))
        self.db.execute("DELETE FROM entries WHERE tree=? AND kind=0", (self.tree,))

    def _add_many(self, seq: int, new: Sequence[ManifestRow], *, begins: bool) -> None:
        """The versions to the entries. A tree begins with all that it has."""
        if begins:
            self.db.execute(
                f"INSERT INTO versions SELECT tree, ?, path, {STATE} FROM entries WHERE tree=?",
                (seq, self.tree),
            )
            return
        insert_all(self.db, "INSERT INTO versions", [seen[:9] for seen in new], (self.tree, seq))

    def below(self, folder: bytes) -> list[bytes]:
        """The paths below a folder."""
        return self._paths(*_below(folder))

    def children(self, folder: bytes) -> list[bytes]:
        """The paths in a folder, or at the top; those below them are not."""
        condition, values = _below(folder) if folder else ("", ())
        start = len(folder) + 2 if folder else 1
        condition += " AND instr(substr(path, ?), x'2f')=0"
        return self._paths(condition, (*values, start))

    def _paths(self, condition: str, values: tuple[bytes | int, ...]) -> list[bytes]:
        found: dict[bytes, int] = {}
        for table, order in (("entries", "path"), ("recent_paths", "path, generation")):
            rows = self.db.execute(
                f"SELECT path, kind FROM {table} WHERE tree=? {condition} ORDER BY {order}",
                (self.tree, *values),
            )
            # Of a path that comes several times the last one counts.
            found.update(rows)
        return [path for path, kind in found.items() if kind]


def number_of(db: sqlite3.Connection, name: str) -> int:
    """By which a tree is called in its rows; 0 for one that nothing is known of."""
    row = db.execute("SELECT tree FROM trees WHERE name=?", (name,)).fetchone()
    return row[0] if row else 0


def enter(db: sqlite3.Connection, name: str) -> None:
    """Give the tree a number, unless it has one."""
    db.execute(
        "INSERT OR IGNORE INTO trees (name, generation, fingerprint) VALUES (?, 0, '')", (name,)
    )


def _below(folder: bytes) -> tuple[str, tuple[bytes, ...]]:
    # b"0" is what follows b"/".
    return "AND path>? AND path<?", (folder + b"/", folder + b"0")
