"""Owns what a child's tree can take over from its parent's: entries of which a copy is proven."""

import os
import sqlite3
import time
from collections.abc import Mapping
from typing import Protocol

from cleveragents.infrastructure.snapshots.entry import Seen, status_of

_COLUMNS = "path, kind, mode, size, mtime_ns, hash, target, uid, gid, ctime_ns, ino, dev"


class Marks(Protocol):
    """The original when it was read, and the copy when it was finished."""

    @property
    def source(self) -> os.stat_result: ...
    @property
    def target(self) -> os.stat_result: ...


def adopted(
    db: sqlite3.Connection, parent_tree: str, copied: Mapping[bytes, Marks]
) -> dict[bytes, Seen]:
    """The copies that certainly hold what the parent's entries say.

    The original still was what its entry says when it was read, so the copy has that content; and
    if the copy is changed after it was finished, its marks show that. Whatever is left out here
    the next capture looks at, as at any path that is not known.
    """
    now = time.time_ns()
    found: dict[bytes, Seen] = {}
    for row in db.execute(f"SELECT {_COLUMNS} FROM entries WHERE tree=?", (parent_tree,)):
        seen = Seen._make(row)
        marks = copied.get(seen.path)
        if marks is not None and seen.still_is(status_of(marks.source, now)):
            made = status_of(marks.target, now)
            found[seen.path] = made.seen(seen.path, hash=seen.hash, target=seen.target)
    return found
