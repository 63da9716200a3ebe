"""Finding changes by watching: which trees are watched, and what to do where that fails.

A tree is compared whole when it is first asked about, with its folders watched before they are
listed, so that nothing falls between the two; from then on the kernel tells. After any doubt, that
is a full queue, a folder that cannot be watched, or another known state than was acknowledged, it
is compared whole again: to look too much costs time, to look too little loses a file.
What is not guaranteed: watches. Where the system gives none, or the file system is not local, every
checkpoint compares the whole tree, and says so.
"""

import errno
import os
import time
from collections.abc import Callable, Collection, Mapping

from msgspec.structs import replace

from cleveragents.infrastructure.files.entry import ManifestRow
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.filesystems import is_local
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.snapshots.changes.folder_watches import (
    FolderWatches,
    LostTrackError,
    open_watches,
)
from cleveragents.infrastructure.snapshots.changes.full_scan import SMALL, full_scan
from cleveragents.infrastructure.snapshots.changes.inotify import wait_until_closed
from cleveragents.infrastructure.snapshots.changes.mmap_writers import (
    ProcessesWithoutMappings,
    QuietWrites,
)
from cleveragents.infrastructure.snapshots.changes.tracker import Candidates, ManifestView, NoWatch
from cleveragents.infrastructure.snapshots.changes.watched_tree import WatchedTree

_ONCE = "compared the whole tree: {}"
_ALWAYS = (
    "each checkpoint compares the whole tree, in {:.1f} s, and what a program does without telling"
    " becomes one step at its end: {}"
)
_LIMITS = {
    errno.ENOSPC: "fs.inotify.max_user_watches",
    errno.EMFILE: "fs.inotify.max_user_instances",
}


class Watcher:
    """The ChangeTracker. A tree is compared whole at first, and after any doubt (ADR 0014).

    `watching` is False where nobody looks twice: then each look compares the whole tree.
    """

    def __init__(
        self,
        scratch_dir: str,
        open_watches: Callable[[str], FolderWatches] = open_watches,
        small: int = SMALL,
        *,
        watching: bool = True,
    ) -> None:
        self._small = small
        self._watching = watching
        self._scratch_dir = scratch_dir
        self._open_watches = open_watches
        self._trees: dict[bytes, WatchedTree] = {}
        self._unwatched: dict[bytes, str] = {}
        self._bystanders = ProcessesWithoutMappings()
        self._quiet: dict[bytes, QuietWrites] = {}
        self._pid = os.getpid()

    def candidates(
        self, anchor: RootedFolder, exclude: Excludes, known: ManifestView
    ) -> Candidates:
        if not self._watching:
            return self._compare(anchor, exclude, known)
        tree = self._tree(anchor.root)
        notes: tuple[str, ...] = ()
        if tree is not None and tree.is_of(anchor, exclude, known):
            try:
                return tree.candidates(anchor, known)
            except LostTrackError as error:
                notes = (_ONCE.format(error),)
        if anchor.root not in self._unwatched:
            self.release(anchor.root)
            self._attach(anchor, exclude, known)
        if (tree := self._tree(anchor.root)) is not None:
            return replace(
                tree.pending(),
                notes=notes,
                listing=tree.listing,
                stat_index=tree.stat_index,
                excluded=tree.excluded,
            )
        begun = time.monotonic()
        found = self._compare(anchor, exclude, known)
        note = _ALWAYS.format(time.monotonic() - begun, self._unwatched[anchor.root])
        return replace(found, notes=(note,))

    def _compare(self, anchor: RootedFolder, exclude: Excludes, known: ManifestView) -> Candidates:
        quiet = self._quiet_in(anchor)
        look = full_scan(anchor, exclude, known, _Meanwhile(quiet), self._small)
        paths = look.paths | quiet.look(anchor, known, look.linked)
        return replace(look._replace(paths=paths).candidates(), mapped=quiet.mapped)

    def look_again(
        self, anchor: RootedFolder, known: ManifestView, paths: Collection[bytes]
    ) -> None:
        tree = self._tree(anchor.root)
        if tree is None:
            return
        try:
            tree.look_again(anchor, known, paths)
        except LostTrackError:
            self.release(anchor.root)

    def acknowledge(self, root: bytes, seen: Mapping[bytes, ManifestRow]) -> None:
        tree = self._tree(root)
        if tree is not None:
            tree.acknowledge(seen)
        if (quiet := self._quiet.get(root)) is not None:
            quiet.acknowledge()

    def release(self, root: bytes) -> None:
        self._unwatched.pop(root, None)
        tree = self._trees.pop(root, None)
        if tree is not None:
            tree.close()

    def stop(self) -> None:
        """Nothing is watched any more; the next look at a tree compares it whole."""
        for root in [*self._trees]:
            self.release(root)

    def close(self) -> None:
        """The same, and wait until the kernel has done its part."""
        self.stop()
        wait_until_closed()

    def _tree(self, root: bytes) -> WatchedTree | None:
        if self._pid != os.getpid():
            # A fork shares the queue with its parent: one would take the other's events.
            self._pid, self._trees, self._quiet = os.getpid(), {}, {}
        return self._trees.get(root)

    def _quiet_in(self, anchor: RootedFolder) -> QuietWrites:
        return self._quiet.setdefault(anchor.root, QuietWrites(anchor.root, self._bystanders))

    def _attach(self, anchor: RootedFolder, exclude: Excludes, known: ManifestView) -> None:
        if not is_local(anchor.folder(b"")):
            self._unwatched[anchor.root] = "its file system may change without being told"
            return
        try:
            watches = self._open_watches(self._scratch_dir)
        except OSError as error:
            self._unwatched[anchor.root] = _why(error)
            return
        try:
            quiet = self._quiet_in(anchor)
            tree = WatchedTree(anchor, exclude, known, watches, quiet, self._small)
            self._trees[anchor.root] = tree
        except LostTrackError as error:
            watches.close()
            self._unwatched[anchor.root] = str(error)
        except BaseException:
            watches.close()
            raise


class _Meanwhile(NoWatch):
    """Finds out who is there while others list the tree, as a watch does too."""

    def __init__(self, quiet: QuietWrites) -> None:
        self._quiet = quiet

    def complete(self) -> None:
        self._quiet.begin()


def _why(error: OSError) -> str:
    limit = _LIMITS.get(error.errno or 0)
    told = f"raise {limit}" if limit else str(error.strerror)
    return f"nothing can be watched ({told})"
