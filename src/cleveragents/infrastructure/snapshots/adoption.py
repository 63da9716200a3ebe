"""Owns what a child's tree can take over from its parent's: entries of which a copy is proven."""

import os
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from cleveragents.infrastructure.snapshots.comparison import SMALL
from cleveragents.infrastructure.snapshots.entries import Entries
from cleveragents.infrastructure.snapshots.entry import (
    KIND_BITS,
    KINDS,
    MODE_BITS,
    NEVER,
    RACY_NS,
    SUM_MODULUS,
    Kind,
    Seen,
)
from cleveragents.infrastructure.snapshots.outline import Outline, outline_of, record_of
from cleveragents.infrastructure.snapshots.present import Delta
from cleveragents.infrastructure.snapshots.versions import SnapshotRow, Versions

_SECOND = 1_000_000_000

Marks = tuple[os.stat_result, os.stat_result]
"""The original when it was read, and the copy when it was finished."""


@dataclass(slots=True)
class Adopted:
    """The copies that certainly hold what the parent's entries say, and the sum over them.

    `newest` is the snapshot of the tree that they were made from.
    """

    tree: str
    newest: SnapshotRow | None
    total: int
    seen: dict[bytes, Seen] = field(default_factory=dict[bytes, Seen])

    def delta(self) -> Delta:
        return Delta(now=self.seen, outline=self._outline(), told=True)

    def _outline(self) -> Outline | None:
        """So that the next look has something to compare the whole tree with."""
        if len(self.seen) <= SMALL:
            return None
        return outline_of(record for seen in self.seen.values() if (record := record_of(seen)))


def wait_until_old(copied: Mapping[bytes, Marks]) -> None:
    """What was made just now might change without showing it, and would be read once more.

    Reading a few is faster than waiting.
    """
    if len(copied) <= SMALL:
        return
    newest = max(target.st_ctime_ns for _, target in copied.values())
    wait = newest + RACY_NS - time.time_ns()
    if 0 <= wait <= RACY_NS:
        time.sleep((wait + 1_000_000) / _SECOND)


def adopted(db: sqlite3.Connection, parent_tree: str, copied: Mapping[bytes, Marks]) -> Adopted:
    """The original still was what its entry says when it was read, so the copy has that content;
    and if the copy is changed after it was finished, its marks show that. Whatever is left out
    here the next capture looks at, as at any path that is not known.
    """
    newest = Versions(db, parent_tree).newest()
    found = Adopted(parent_tree, newest, newest.total if newest else 0)
    young = time.time_ns() - RACY_NS
    of_parent = Entries(parent_tree)
    of_parent.bind(db)
    for _, seen in of_parent.items():
        marks = copied.get(seen.path)
        if marks is None or not _is_proven(seen, *marks):
            found.total -= seen.entry.token()
            continue
        made = marks[1]
        ctime = made.st_ctime_ns
        certain = NEVER if max(made.st_mtime_ns, ctime) >= young else ctime
        found.seen[seen.path] = Seen(
            *seen[:7], made.st_uid, made.st_gid, certain, made.st_ino, made.st_dev
        )
    found.total %= SUM_MODULUS
    return found


def _is_proven(seen: Seen, source: os.stat_result, target: os.stat_result) -> bool:
    """The original is what was seen, and the copy is of the same kind, mode, size and time."""
    mode = source.st_mode
    kind = KINDS.get(mode & KIND_BITS)
    if kind != seen.kind or target.st_mode != mode:
        return False
    if kind is Kind.DIR:
        return mode & MODE_BITS == seen.mode
    if source.st_ctime_ns != seen.ctime_ns or source.st_ino != seen.ino:
        return False
    if source.st_dev != seen.dev or not seen.mtime_ns == source.st_mtime_ns == target.st_mtime_ns:
        return False
    if kind is Kind.LINK:
        return True
    return mode & MODE_BITS == seen.mode and seen.size == source.st_size == target.st_size
