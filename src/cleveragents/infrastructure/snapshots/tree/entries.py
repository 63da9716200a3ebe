"""Owns a tree's manifest as a mapping that reads a path's row only when it is asked for."""

import sqlite3
from collections.abc import Collection, ItemsView, Iterator, Mapping, Sequence

from cleveragents.infrastructure.files.entry import NEVER, Seen
from cleveragents.infrastructure.snapshots.store.batching import in_sizes

_COLUMNS = "path, kind, mode, size, mtime_ns, hash, target, uid, gid, ctime_ns, ino, dev"


class Entries(Mapping[bytes, Seen]):
    """What a tree was when it was last looked at. Bound to one transaction after the other.

    What was read is kept until the next one begins: so much and no more is certain to be true.
    """

    def __init__(self) -> None:
        self._tree = 0
        self._db: sqlite3.Connection | None = None
        self._believed = True
        self._read: dict[bytes, Seen | None] = {}
        self._complete = False

    def bind(self, db: sqlite3.Connection, tree: int, *, believed: bool = True) -> None:
        """Unless the marks are `believed`, every path is one that may have changed."""
        self._db, self._tree, self._believed = db, tree, believed
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

    def prefetch(self, paths: Collection[bytes]) -> Mapping[bytes, Seen | None]:
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

    def _everything(self) -> dict[bytes, Seen]:
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
        found = {row[0]: Seen._make(row) if row[1] else None for row in rows}
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
