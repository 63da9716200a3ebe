"""Sifting a large tree: which of its paths are certainly what they were (ADR 0036).

Git compares the status of every file with one that was written down for it, on all processors. We
compare that of every folder: as long as it stands, nothing came to it or went from it. So nothing
has to be listed but the folders that changed. When a file may be skipped: `stat_index.CERTAIN`;
what makes one path unchanged: `files/entry.py`.
In which order: folders are watched, then git is asked, then we look at folders ourselves, while it
works, and into those that changed. Watched first, what changes during the look is heard of.
What is not guaranteed: an answer. Where too much has changed, or git says anything unexpected, all
of it is listed anew, which is faster then.
"""

import os
import time
from collections.abc import Collection, Iterable
from typing import NamedTuple

from cleveragents.infrastructure.files.entry import Kind, StatInfo, parent_of, status_of
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import linked_files, status_at, walk
from cleveragents.infrastructure.snapshots.changes.stat_index import (
    CannotSiftError,
    FolderStamp,
    StatIndex,
    compare,
    folder_status,
    paths_in,
)
from cleveragents.infrastructure.snapshots.changes.subprocesses import ParallelCommands
from cleveragents.infrastructure.snapshots.changes.tracker import ManifestView, Watch

# Beyond that it is faster to list everything anew.
_MOST_FOLDERS = 200
_MOST_PATHS = 2000


class Sifted(NamedTuple):
    """All paths that may differ, and some that do not. `statuses` are of those that were looked
    at on the way."""

    paths: set[bytes]
    special: set[bytes]
    linked: set[bytes]
    statuses: dict[bytes, StatInfo | None]


def sift(
    anchor: RootedFolder,
    exclude: Excludes,
    known: ManifestView,
    watch: Watch,
    stat_index: StatIndex,
) -> Sifted:
    """Raises CannotSiftError, CommandFailedError or OSError."""
    root = anchor.folder(b"")
    with ParallelCommands(root) as programs:
        changed: list[bytes] = []
        first = [mark for mark in stat_index.folders if mark.path < stat_index.border]
        for half, marks in zip(
            stat_index.halves, (first, stat_index.folders[len(first) :]), strict=True
        ):
            # Before anybody looks at what is in them.
            watch.folders(root, (mark.path for mark in marks))
            compare(programs, half)
            changed += [mark.path for mark in marks if not _stands(root, mark)]
        if len(changed) > _MOST_FOLDERS:
            raise CannotSiftError
        sifted = {mark.path for mark in stat_index.folders}
        look = _StatIndexScan(anchor, exclude, known, watch, sifted, sifted.difference(changed))
        look.into_folders(changed)
        answers = programs.answers()
    files = [path for answer in answers for path in paths_in(answer)]
    if len(files) > _MOST_PATHS:
        raise CannotSiftError
    look.at_paths(files)
    return look.found


def _stands(root: int, mark: FolderStamp) -> bool:
    try:
        found = folder_status(root, mark.path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (found.st_ino, found.st_dev, found.st_ctime_ns) == mark[1:]


class _StatIndexScan:
    """At what changed. `sifted` are the folders that the stat index tells of, `standing` those of
    them in which nothing came or went."""

    def __init__(
        self,
        anchor: RootedFolder,
        exclude: Excludes,
        known: ManifestView,
        watch: Watch,
        sifted: set[bytes],
        standing: set[bytes],
    ) -> None:
        self._anchor = anchor
        self._exclude = exclude
        self._known = known
        self._watch = watch
        self._sifted = sifted
        self._standing = standing
        self.found = Sifted(set(), set(), set(), {})

    def into_folders(self, folders: Iterable[bytes]) -> None:
        for folder in folders:
            if folder and not self._is_folder(folder):
                self._look_at(folder)
            else:
                self._list(folder)

    def at_paths(self, paths: Collection[bytes]) -> None:
        self._known.load(paths)
        for path in paths:
            self._look_at(path)

    def _is_folder(self, path: bytes) -> bool:
        status = status_at(self._anchor, path)
        return status is not None and status.kind is Kind.DIR

    def _list(self, folder: bytes) -> None:
        if folder:
            self.found.paths.add(folder)
        prefix = folder + b"/" if folder else b""
        names = os.listdir(self._anchor.folder(folder))
        there = {prefix + os.fsencode(name) for name in names} - self._exclude.hidden
        for path in there.union(self._known.children(folder)):
            if path not in self._sifted:
                self._look_at(path)

    def _look_at(self, path: bytes) -> None:
        """It may be anything now, and so may all that is, or was, below it."""
        self.found.paths.add(path)
        self.found.statuses[path] = status = self._status(path)
        if (status is None or status.kind is not Kind.DIR) and self._may_hold(path):
            self.found.paths.update(self._known.below(path))
        if status is None:
            return
        if status.kind is None:
            self.found.special.add(path)
        elif status.kind is Kind.FILE and status.links > 1:
            self.found.linked.add(path)
        elif status.kind is Kind.DIR:
            inner = walk(self._anchor, self._exclude, path, self._watch.folder)
            self.found.paths.update(inner.found, self._known.below(path))
            self.found.special.update(inner.special)
            self.found.linked.update(linked_files(inner))

    def _status(self, path: bytes) -> StatInfo | None:
        if parent_of(path) not in self._standing:
            return status_at(self._anchor, path)
        # No folder above it has become a link, so that one call leads there.
        try:
            found = os.lstat(path, dir_fd=self._anchor.folder(b""))
        except OSError:
            return status_at(self._anchor, path)
        status = status_of(found, time.time_ns())
        return status_at(self._anchor, path) if status.kind is Kind.DIR else status

    def _may_hold(self, path: bytes) -> bool:
        """Whether anything is known below it: not below a file."""
        seen = self._known.seen.get(path)
        return seen is None or seen.kind == Kind.DIR
