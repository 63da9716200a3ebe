"""What the user's working folder holds at the paths that an apply changes: old, new, or neither."""

import os
import stat
from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from pathlib import Path, PurePosixPath

from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import (
    REGULAR,
    GitTrees,
    TreeChange,
    nul_ended,
)


class Disk(Enum):
    ABSENT = "absent"
    BLOCKED = "a folder on the way is a file or a link"
    FILE = "file or link"
    FOLDER = "folder"
    STRANGE = "pipe, socket or device"


class DiskState:
    """What the working folder holds at the paths that differ between `old` and another tree.

    Every file is read: neither its time nor a flag in the user's index can hide an edit. Those that
    are `absent` on purpose need not be there.
    """

    def __init__(
        self,
        git: Git,
        trees: GitTrees,
        old: str,
        changes: Sequence[TreeChange],
        absent: Collection[bytes],
    ) -> None:
        self._top = Path(git.directory)
        self._leaving = {c.path for c in changes if c.was_file and not c.is_file}
        self._disk = {change.path: _disk(self._top, change.name) for change in changes}
        self._sparse = absent
        files = [path for path, disk in self._disk.items() if disk is Disk.FILE]
        with trees.index_for(git, old, [change.path for change in changes]) as private:
            args = ("update-index", "--add", "--replace", "-z", "--stdin")
            private.run(*args, input=nul_ended(files))
            self._entries = _entries(private, files)
        self._unfilter(git, trees, old, changes)

    def disk(self, path: bytes) -> Disk:
        return self._disk[path]

    def is_old(self, change: TreeChange) -> bool:
        match self._disk[change.path]:
            case Disk.FILE:
                return self._entries.get(change.path) == (change.old_mode, change.old_oid)
            case Disk.ABSENT:
                return not change.was_file or change.path in self._sparse
            case Disk.BLOCKED:
                return not change.was_file and self._will_be_free(change.path)
            case Disk.FOLDER:
                in_the_way = change.is_file and not self._will_be_empty(change.name)
                return not change.was_file and not in_the_way
            case Disk.STRANGE:
                return False

    def is_new(self, change: TreeChange) -> bool:
        match self._disk[change.path]:
            case Disk.FILE:
                return self._entries.get(change.path) == (change.new_mode, change.new_oid)
            case Disk.ABSENT | Disk.BLOCKED:
                return change.was_file and not change.new_oid.strip(b"0")
            case Disk.FOLDER:
                return not change.is_file
            case Disk.STRANGE:
                return False

    def _unfilter(self, git: Git, trees: GitTrees, old: str, changes: Sequence[TreeChange]) -> None:
        """A file that only filters would change is as it was; `GitTrees.of_sandbox` says why."""
        suspects = [
            change
            for change in changes
            if change.old_mode in REGULAR
            and self._disk[change.path] is Disk.FILE
            and not self.is_old(change)
            and self._entries[change.path][0] == change.old_mode
        ]
        for change in trees.unfiltered(git, old, suspects):
            self._entries[change.path] = (change.old_mode, change.old_oid)

    def _will_be_free(self, path: bytes) -> bool:
        parents = PurePosixPath(os.fsdecode(path)).parents
        return any(os.fsencode(parent) in self._leaving for parent in parents)

    def _will_be_empty(self, name: str) -> bool:
        """Everything in the folder is on its way out, so that a file can take its place."""
        for folder, folders, files in os.walk(self._top / name):
            links = [item for item in folders if Path(folder, item).is_symlink()]
            inside = [Path(folder, item).relative_to(self._top) for item in (*files, *links)]
            if any(os.fsencode(item) not in self._leaving for item in inside):
                return False
        return True


def left_out(git: Git) -> set[bytes]:
    """Paths that a sparse checkout does not have on disk, as its index says."""
    listed = git.run("ls-files", "-t", "-z").stdout.split(b"\0")[:-1]
    return {line[2:] for line in listed if line.startswith(b"S ")}


def _entries(private: Git, paths: Iterable[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
    wanted = set(paths)
    found: dict[bytes, tuple[bytes, bytes]] = {}
    for line in private.run("ls-files", "--stage", "-z").stdout.split(b"\0")[:-1]:
        meta, _, path = line.partition(b"\t")
        if path in wanted:
            mode, oid, _ = meta.split(b" ")
            found[path] = (mode, oid)
    return found


def _disk(top: Path, name: str) -> Disk:
    path = top
    for part in PurePosixPath(name).parts[:-1]:
        path /= part
        if path.is_symlink() or path.is_file():
            return Disk.BLOCKED
    mode = mode_of(top / name)
    if mode is None:
        return Disk.ABSENT
    if stat.S_ISDIR(mode):
        return Disk.FOLDER
    return Disk.FILE if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else Disk.STRANGE


def mode_of(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
