"""Owns a tree's manifest as a mapping that reads a path's row only when it is asked for."""

import sqlite3
from collections.abc import Collection, ItemsView, Iterator, Mapping

from cleveragents.infrastructure.snapshots.bulk import among
from cleveragents.infrastructure.snapshots.entry import Seen
from cleveragents.infrastructure.snapshots.recent import RECENT

_COLUMNS = "path, kind, mode, size, mtime_ns, hash, target, uid, gid, ctime_ns, ino, dev"


class Entries(Mapping[bytes, Seen]):
    """What a tree was when it was last looked at. Bound to one transaction after the other.

    What was read is kept until the next one begins: so much and no more is certain to be true.
    """

    def __init__(self, tree: str) -> None:
        self._tree = tree
        self._db: sqlite3.Connection | None = None
        self._read: dict[bytes, Seen | None] = {}
        self._complete = False

    def bind(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._read, self._complete = {}, False

    def __getitem__(self, path: bytes) -> Seen:
        seen = self.get(path)
        if seen is None:
            raise KeyError(path)
        return seen

    def get(self, path: bytes, default: Seen | None = None) -> Seen | None:  # pyright: ignore[reportIncompatibleMethodOverride]
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

    def items(self) -> ItemsView[bytes, Seen]:
        return self._everything().items()

    def prefetch(self, paths: Collection[bytes]) -> None:
        """One question for many paths costs a fifth of one for each."""
        if self._complete:
            return
        missing = [path for path in paths if path not in self._read]
        for table in (RECENT + "entries", "entries"):
            for condition, some in among("path", missing):
                self._note(table, f"AND {condition}", some)
            missing = [path for path in missing if path not in self._read]
        self._read.update(dict.fromkeys(missing))

    def _everything(self) -> dict[bytes, Seen]:
        if not self._complete:
            self._read = {}
            self._note("entries", "", ())
            self._note(RECENT + "entries", "", ())
            self._complete = True
        return {path: seen for path, seen in self._read.items() if seen is not None}

    def _note(self, table: str, condition: str, values: Collection[bytes]) -> None:
        if self._db is None:
            return  # a tree that nothing is known of yet
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM {table} WHERE tree=? {condition}", (self._tree, *values)
        )
        self._read.update((row[0], Seen._make(row) if row[1] else None) for row in rows)
