"""Putting files in place below a root, each by one rename, and making all of it durable at the end.

Below it lie the restore of a sandbox and the update of a project; what may be replaced, and what
has to go first, is their affair.
"""

import errno
import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum

from cleveragents.infrastructure.files.copy.one_file import copy_one
from cleveragents.infrastructure.files.entry import parent_of
from cleveragents.infrastructure.files.filesystems import sync_all
from cleveragents.infrastructure.files.rooted_folder import RootedFolder

# Up to this many paths are made durable one by one; more of them, by one call for the whole file
# system, which also waits for what others have written to it.
FEW = 16


class Sync(Enum):
    EACH = "each folder by itself"
    TOGETHER = "the whole file system, once"
    BESIDE = "the whole file system, once, by the caller; what is mounted below, now"
    LATER = "by the caller, together with other things"


def sync_of(count: int) -> Sync:
    return Sync.EACH if count <= FEW else Sync.TOGETHER


class RootedWriter:
    """`stage` is an open folder of ours in which the new files lie ready."""

    def __init__(self, root: RootedFolder, stage: int) -> None:
        self._root = root
        self._stage = stage
        self._touched: set[bytes] = set()

    def touch(self, path: bytes) -> None:
        """Something has come to `path` or gone from there: its folder has to be made durable."""
        self._touched.add(parent_of(path))

    def move_in(self, staged: bytes, path: bytes) -> None:
        """The staged file or link takes the place of anything but a folder, in one step."""
        folder, name = self._root.place(path)
        try:
            os.rename(staged, name, src_dir_fd=self._stage, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._move_in_from_elsewhere(staged, folder, name)
        self.touch(path)

    def finish(self, modes: Mapping[bytes, int], sync: Sync) -> None:
        """Folders get these modes, or back what they had before we came. Modes are last: a folder
        may be closed to us then. Before this returns, nothing is durable in any certain order."""
        device = os.fstat(self._root.folder(b"")).st_dev
        for path in self._touched:
            with suppress(FileNotFoundError, NotADirectoryError):  # removed itself later on
                _sync_folder(self._root.folder(path), sync, device)
        final = {**self._root.opened_modes, **modes}
        # Deepest first: a parent that is closed again would be in the way of its children.
        for path in sorted(final, key=depth, reverse=True):
            with suppress(FileNotFoundError, NotADirectoryError):
                folder = self._root.folder(path)
                os.fchmod(folder, final[path])
                _sync_folder(folder, sync, device)
            self._root.close_chain()
        self._root.opened_modes.clear()
        if sync is Sync.TOGETHER:
            sync_all(self._root.folder(b""))

    def _move_in_from_elsewhere(self, staged: bytes, folder: int, name: bytes) -> None:
        """Onto another file system that is mounted below the root: through a neighbour."""
        # Always the same name: what a kill leaves is used up by the repetition.
        beside = b".cleveragents-" + hashlib.sha256(name).hexdigest()[:32].encode()
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        copy_one(self._stage, staged, folder, beside, synced=True)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.unlink(staged, dir_fd=self._stage)


def _sync_folder(folder: int, sync: Sync, together: int) -> None:
    """What is mounted below the root is not synced with its file system."""
    elsewhere = sync in {Sync.TOGETHER, Sync.BESIDE} and os.fstat(folder).st_dev != together
    if sync is Sync.EACH or elsewhere:
        os.fsync(folder)


def depth(path: bytes) -> tuple[int, bytes]:
    """By which folders sort before what is in them, and the root before all."""
    return path.count(b"/") + bool(path), path
