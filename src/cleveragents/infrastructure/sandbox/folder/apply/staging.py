"""The hidden folder in a project that holds new files before, and old ones after an apply."""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.infrastructure.files.copy.one_file import copy_one
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.entry import Entry, Kind, same_state, shown
from cleveragents.infrastructure.files.read_path import hash_only, read_path
from cleveragents.infrastructure.files.rooted_folder import FOLDER_FLAGS, RootedFolder
from cleveragents.infrastructure.files.update.stage_folder import StageFolder
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader

PREFIX = ".cleveragents-apply-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderStage(StageFolder):
    """Near the project, because a file reaches its place in one step only from the same file
    system. `fresh` are the files that have no owner and mode yet.
    """

    def __init__(self, path: str) -> None:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise ApplyRefusedError(
                f"{path} is in the way: it is not a folder of ours",
                f"look at it and remove it: ls -la {path}",
            )
        super().__init__(path)
        self.fresh: set[bytes] = set()

    def fill(self, reader: TreeReader, wanted: Mapping[bytes, Entry]) -> None:
        """Write the files and links under these names from the snapshots."""
        by_hash: dict[bytes, list[bytes]] = {}
        for name, entry in wanted.items():
            self.drop(name)
            if entry.kind is Kind.LINK:
                os.symlink(entry.target, name, dir_fd=self.fd)
            elif entry.kind is Kind.FILE:
                self.fresh.add(name)
                by_hash.setdefault(entry.hash, []).append(name)
        labels = {key: shown(wanted[names[0]].path) for key, names in by_hash.items()}
        for key, pieces in reader.contents(labels):
            self._write(by_hash[key], pieces)
        for name, entry in wanted.items():
            times = (entry.mtime_ns, entry.mtime_ns)
            os.utime(name, ns=times, dir_fd=self.fd, follow_symlinks=False)

    def has(self, name: bytes) -> bool:
        return os.fsdecode(name) in os.listdir(self.fd)

    def holds(self, name: bytes, entry: Entry) -> bool:
        """Whether what was kept under this name still is the entry, whole."""
        with RootedFolder(self.path) as anchor:
            seen = read_path(anchor, name, hash_only)
        return seen is not None and same_state(seen.entry, entry)

    def remove(self) -> None:
        """What cannot be removed stays: the change itself is done or undone by now."""
        with suppress(OSError):
            self._remove()

    def _remove(self) -> None:
        with os.scandir(self.fd) as found:
            inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        for name, is_folder in inside:
            if is_folder:
                os.rmdir(name, dir_fd=self.fd)
            else:
                os.unlink(name, dir_fd=self.fd)
        os.rmdir(self.path)
        # Whoever records that it is over must not find it again after a power cut.
        with opened(os.path.dirname(self.path), FOLDER_FLAGS) as project:
            os.fsync(project)

    def _write(self, names: list[bytes], pieces: Iterable[bytes]) -> None:
        first, *others = names
        with os.fdopen(os.open(first, _NEW, 0o600, dir_fd=self.fd), "wb") as file:
            file.writelines(pieces)
        for name in others:
            copy_one(self.fd, first, self.fd, name, synced=False)


def stage_path(project: str, owner: str) -> str:
    return os.path.join(project, PREFIX + owner)
