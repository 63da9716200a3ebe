"""What is known of one watched tree between two looks at it: the paths that may differ.

The invariant: outside of the pending paths, the tree is as the base says.
In which order: the queue is read to its end; paths that were told of are looked at; then folders
that came, went or moved are looked through, until looking brings up no more of them; only then is
what was heard forgotten. Paths stay pending until their snapshot is committed (`acknowledge`).
Why: events tell of the past, and only what is there after the last of them counts. In a new folder
something may have happened before it was watched, so it is listed after that.
What is not guaranteed: writes through memory, which no event tells of (`mmap_writers.py`), and
files with several names, which may be written under one outside: those are compared every time.
"""

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping

from cleveragents.infrastructure.files.entry import Kind, ManifestRow, StatInfo, parent_of
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import linked_files, status_at, walk
from cleveragents.infrastructure.snapshots.changes.folder_watches import (
    FolderWatches,
    LostTrackError,
)
from cleveragents.infrastructure.snapshots.changes.full_scan import SMALL, full_scan
from cleveragents.infrastructure.snapshots.changes.mmap_writers import QuietWrites
from cleveragents.infrastructure.snapshots.changes.tracker import Candidates, ManifestView

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_NO_ROOM = (errno.ENOSPC, errno.ENOMEM, errno.EMFILE)


class WatchedTree:
    """Every folder of the tree is watched from the moment before it was first listed."""

    def __init__(
        self,
        anchor: RootedFolder,
        exclude: Excludes,
        known: ManifestView,
        watches: FolderWatches,
        quiet: QuietWrites,
        small: int = SMALL,
    ) -> None:
        """Compares the whole tree. Raises LostTrackError if it cannot be watched."""
        self._identity = anchor.identity()
        self._exclude = exclude
        self._watches = watches
        self._quiet = quiet
        self._base: Mapping[bytes, ManifestRow] = known.seen
        watching = _Watching(self._watches, self._quiet)
        look = full_scan(anchor, exclude, known, watching, small)
        self.listing, self.stat_index, self.excluded = look.listing, look.stat_index, look.excluded
        self._special = look.special
        # A file with several names is reported under the one that was used, which may be outside.
        self._linked = look.linked
        self._pending = look.paths | self._quiet.look(anchor, known, self._linked)
        self._since: set[bytes] = set()

    def is_of(self, anchor: RootedFolder, exclude: Excludes, known: ManifestView) -> bool:
        return (
            anchor.identity() == self._identity
            and exclude == self._exclude
            and known.seen is self._base
        )

    def candidates(self, anchor: RootedFolder, known: ManifestView) -> Candidates:
        """Raises LostTrackError."""
        self._pending |= self._since | self._news(anchor, known)
        self._since = set()
        return self.pending(self._relinked(anchor, known))

    def pending(self, more: Iterable[bytes] = ()) -> Candidates:
        return Candidates(
            paths=tuple(sorted(self._pending.union(more))),
            special=tuple(sorted(self._special)),
            mapped=self._quiet.mapped,
        )

    def look_again(
        self, anchor: RootedFolder, known: ManifestView, paths: Collection[bytes]
    ) -> None:
        """Raises LostTrackError."""
        self._since |= self._news(anchor, known).difference(paths)

    def acknowledge(self, seen: Mapping[bytes, ManifestRow]) -> None:
        self._base = seen
        self._pending, self._since = self._since, set()

    def close(self) -> None:
        self._watches.close()

    def _news(self, anchor: RootedFolder, known: ManifestView) -> set[bytes]:
        watches = self._watches
        watches.drain()
        found: set[bytes] = set()
        known.load(watches.paths | watches.written | {parent_of(path) for path in watches.paths})
        for path in watches.paths | self._quiet.look(anchor, known, self._linked):
            self._look(anchor, path, known, found)
        for path in watches.written - watches.paths:
            self._hear_of_write(anchor, path, known, found)
        done: set[bytes] = set()
        while waiting := watches.folders - done:
            done |= waiting
            for folder in _topmost(waiting):
                self._look_through(anchor, folder, known, found)
        # Not earlier: if anything failed on the way, it has to be looked at next time.
        watches.paths.clear()
        watches.written.clear()
        watches.folders.clear()
        return found

    def _hear_of_write(
        self, anchor: RootedFolder, path: bytes, known: ManifestView, found: set[bytes]
    ) -> None:
        before = known.seen.get(path)
        if before is not None and before.kind == Kind.FILE:
            # It is still a file, and has the names it had: anything else would have been told.
            found.add(path)
        else:
            self._look(anchor, path, known, found)

    def _look(
        self, anchor: RootedFolder, path: bytes, known: ManifestView, found: set[bytes]
    ) -> None:
        self._special.discard(path)
        before = known.seen.get(path)
        is_known = before is not None
        if is_known:
            found.add(path)
        if before and before.kind == Kind.FILE and _is_file_of_one_name(anchor, path):
            return
        status = _status_at(anchor, path)
        if status is None:
            self._look_at_parent(path, known)
            return
        if (path, status.kind is Kind.DIR) in self._exclude:
            return
        if status.kind is None:
            self._special.add(path)
        elif status.kind is Kind.DIR and not is_known:
            self._watches.folders.add(path)
        else:
            self._doubt_if_linked(path, status)
            _add_with_parents(path, known, found)

    def _look_at_parent(self, path: bytes, known: ManifestView) -> None:
        """One that held excluded paths and nothing else is a folder once they are gone."""
        parent = parent_of(path)
        if parent and parent not in known.seen:
            self._watches.folders.add(parent)

    def _look_through(
        self, anchor: RootedFolder, folder: bytes, known: ManifestView, found: set[bytes]
    ) -> None:
        found.update(known.below(folder))
        self._special = {p for p in self._special if not p.startswith(folder + b"/")}
        status = _status_at(anchor, folder)
        is_folder = status is not None and status.kind is Kind.DIR
        if not is_folder or (folder, True) in self._exclude:
            self._look(anchor, folder, known, found)
            return
        watching = _Watching(self._watches, self._quiet)
        listing = walk(anchor, self._exclude, folder, watching.folder)
        for path in linked_files(listing):
            self._doubt_if_linked(path, listing.found[path])
        self._special.update(listing.special)
        found.update(listing.found)
        # One that holds excluded paths and nothing else is none, see `walk`.
        if folder in known.seen or listing.found or not listing.excluded:
            _add_with_parents(folder, known, found)

    def _doubt_if_linked(self, path: bytes, status: StatInfo) -> None:
        if status.kind is Kind.FILE and status.links > 1 and path not in self._linked:
            raise LostTrackError("a file got a second name")

    def _relinked(self, anchor: RootedFolder, known: ManifestView) -> Iterator[bytes]:
        for path in self._linked:
            status, before = _status_at(anchor, path), known.seen.get(path)
            same = before.still_is(status) if before and status else before is status
            if not same:
                yield path


class _Watching:
    """The Watch of a full comparison: a folder that cannot be watched means lost track."""

    def __init__(self, watches: FolderWatches, quiet: QuietWrites) -> None:
        self._watches = watches
        self._quiet = quiet

    def folder(self, path: bytes, fd: int) -> None:
        try:
            self._watches.add(path, fd)
        except OSError as error:
            raise _unwatchable(error) from error

    def folders(self, root: int, paths: Iterable[bytes]) -> None:
        add = self._watches.add_below
        for path in paths:
            try:
                add(root, path)
            except OSError as error:
                if error.errno in _NO_ROOM:
                    raise _unwatchable(error) from error
                if error.errno not in _NOT_THERE:
                    raise

    def unheard(self, paths: Iterable[bytes]) -> set[bytes]:
        return {path for path in paths if path not in self._watches}

    def complete(self) -> None:
        self._quiet.begin()


def _unwatchable(error: OSError) -> LostTrackError:
    return LostTrackError(f"not every folder can be watched ({error.strerror})")


def _status_at(anchor: RootedFolder, path: bytes) -> StatInfo | None:
    try:
        return status_at(anchor, path)
    except OSError as error:
        raise LostTrackError(f"a folder cannot be looked into ({error.strerror})") from error


def _is_file_of_one_name(anchor: RootedFolder, path: bytes) -> bool:
    """Asked in one call: that a folder above it has become a link is told as well, of that one."""
    try:
        status = os.lstat(path, dir_fd=anchor.folder(b""))
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _add_with_parents(path: bytes, known: ManifestView, found: set[bytes]) -> None:
    """A folder of it may have been none until now, because it held excluded paths only."""
    found.add(path)
    parent = parent_of(path)
    while parent and parent not in known.seen and parent not in found:
        found.add(parent)
        parent = parent_of(parent)


def _topmost(folders: Collection[bytes]) -> list[bytes]:
    return [folder for folder in folders if not any(p in folders for p in _parents(folder))]


def _parents(path: bytes) -> Iterator[bytes]:
    while path := parent_of(path):
        yield path
