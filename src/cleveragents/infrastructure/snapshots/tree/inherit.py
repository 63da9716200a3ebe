"""What a child's tree can take over from its parent's: entries of which a copy is proven.

In which order: many copies are left until a change would show in their times (a few are read again
instead); each entry of the parent whose original had exactly the marks that it is known by is taken
over, with the copy's marks; the sum over the parent's tree loses what is left out; then the child
is captured as any tree is.
Why: an original that was what its entry says when it was copied has given the copy that content, so
that nothing has to be read again. The capture after it looks at all that was left out.
What is not guaranteed: that anything is inherited. What cannot be proven is read, and no more.
"""

import sqlite3
import time
from collections.abc import Mapping

from msgspec import Struct, field

from cleveragents.infrastructure.files.copy.copy_proof import CopyProof
from cleveragents.infrastructure.files.entry import (
    KIND_BITS,
    KINDS,
    MODE_BITS,
    NEVER,
    RACY_NS,
    Kind,
    ManifestRow,
)
from cleveragents.infrastructure.files.tree_hash import SUM_MODULUS, token
from cleveragents.infrastructure.snapshots.changes.full_scan import SMALL
from cleveragents.infrastructure.snapshots.changes.listing import TreeListing, listing_of, record_of
from cleveragents.infrastructure.snapshots.tree.history import SnapshotRow, Versions
from cleveragents.infrastructure.snapshots.tree.manifest import Delta, LazyManifest

_SECOND = 1_000_000_000


class Inherited(Struct):
    """The copies that certainly hold what the parent's entries say, and the sum over them.

    `newest` is the snapshot of the tree that they were made from.
    """

    tree: int
    newest: SnapshotRow | None
    total: int
    seen: dict[bytes, ManifestRow] = field(default_factory=dict[bytes, ManifestRow])

    def delta(self) -> Delta:
        return Delta(now=self.seen, listing=self._outline(), told=self.seen)

    def _outline(self) -> TreeListing | None:
        """So that the next look has something to compare the whole tree with."""
        if len(self.seen) <= SMALL:
            return None
        return listing_of(record for seen in self.seen.values() if (record := record_of(seen)))


def wait_until_old(copied: Mapping[bytes, CopyProof]) -> None:
    """What was made just now might change without showing it, and would be read once more.

    Reading a few is faster than waiting.
    """
    if len(copied) <= SMALL:
        return
    newest = max(marks.ctime_ns for marks in copied.values())
    wait = newest + RACY_NS - time.time_ns()
    if 0 <= wait <= RACY_NS:
        time.sleep((wait + 1_000_000) / _SECOND)


def inherited(
    db: sqlite3.Connection, parent_tree: int, copied: Mapping[bytes, CopyProof], *, believed: bool
) -> Inherited:
    """The original still was what its entry says when it was read, so the copy has that content;
    and if the copy is changed after it was finished, its marks show that. Whatever is left out
    here the next capture looks at, as at any path that is not known.
    """
    newest = Versions(db, parent_tree).newest()
    found = Inherited(parent_tree, newest, newest.total if newest else 0)
    young = time.time_ns() - RACY_NS
    of_parent = LazyManifest()
    of_parent.bind(db, parent_tree, believed=believed)
    for _, seen in of_parent.items():
        marks = copied.get(seen.path)
        if marks is None or not _is_proven(seen, marks):
            found.total -= token(seen)
            continue
        ctime = marks.ctime_ns
        certain = NEVER if max(marks.mtime_ns, ctime) >= young else ctime
        found.seen[seen.path] = ManifestRow(
            *seen[:7], marks.uid, marks.gid, certain, marks.ino, marks.dev
        )
    found.total %= SUM_MODULUS
    return found


def _is_proven(seen: ManifestRow, marks: CopyProof) -> bool:
    """The original is what was seen."""
    mode = marks.mode
    kind = KINDS.get(mode & KIND_BITS)
    if kind != seen.kind:
        return False
    if kind is Kind.DIR:
        return mode & MODE_BITS == seen.mode
    of = (marks.of_ctime_ns, marks.of_ino, marks.of_dev, marks.mtime_ns)
    if of != (seen.ctime_ns, seen.ino, seen.dev, seen.mtime_ns):
        return False
    return kind is Kind.LINK or (mode & MODE_BITS, marks.size) == (seen.mode, seen.size)
