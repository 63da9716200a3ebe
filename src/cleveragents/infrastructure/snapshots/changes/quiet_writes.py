"""Which known paths of a tree a living process may have changed without a sign of it."""

from collections.abc import Collection

from cleveragents.infrastructure.files.filesystems import tells_of_mapped_writes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import status_at
from cleveragents.infrastructure.snapshots.changes.mmap_writers import (
    LiveMappings,
    ProcessesWithoutMappings,
)
from cleveragents.infrastructure.snapshots.changes.tracker import ManifestView


class QuietWrites:
    """For one tree as long as this process works on it, however often it is compared anew: who
    came after the first look stays known. `mapped` are the paths that were found mapped for writing
    by the last look."""

    def __init__(self, root: bytes, bystanders: ProcessesWithoutMappings) -> None:
        self._root = root
        self._bystanders = bystanders
        self._mappings: LiveMappings | None = None
        self.mapped: frozenset[bytes] = frozenset()
        self._pending: set[bytes] = set()

    def begin(self) -> LiveMappings:
        """Find out who is there already; takes a while at the first time."""
        if self._mappings is None:
            self._mappings = LiveMappings(self._root, self._bystanders)
        return self._mappings

    def look(
        self, anchor: RootedFolder, known: ManifestView, linked: Collection[bytes]
    ) -> set[bytes]:
        """Those since the last `acknowledge`. `linked` are files with several names, of
        which another one may be mapped."""
        before, writers = self.mapped, self.begin().now()
        twins = {p for p in linked if (s := known.seen.get(p)) and s.ino in writers.inodes}
        self.mapped = writers.mapped | twins
        # What is written while it is mapped need not show in its status, and may have been written
        # until it was not mapped any more. That somebody maps it does, where the file system is
        # told when he begins to write.
        doubtful = self.mapped | before
        opened = writers.opened - doubtful
        if opened and tells_of_mapped_writes(anchor.folder(b"")):
            opened = {path for path in opened if _differs(anchor, known, path)}
        self._pending |= {path for path in doubtful | opened if path in known.seen}
        return set(self._pending)

    def acknowledge(self) -> None:
        """What was found is stored."""
        self._pending.clear()


def _differs(anchor: RootedFolder, known: ManifestView, path: bytes) -> bool:
    seen, status = known.seen.get(path), status_at(anchor, path)
    return seen is None or status is None or not seen.still_is(status)
