"""The hidden folder in a project that holds new files before, and old ones after a change."""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.infrastructure.files.entry import Entry, Kind, same_state, shown
from cleveragents.infrastructure.files.read_path import hash_only, read_path
from cleveragents.infrastructure.files.rooted_folder import FOLDER_FLAGS, RootedFolder
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader

PREFIX = ".cleveragents-apply-"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderStage:
    """At the top of the project, because a file reaches its place in one step only from the same
    file system. Names in it are given by the caller and survive a kill.
    """

    def __init__(self, project: str, owner: str) -> None:
        self.path = stage_path(project, owner)
        with suppress(FileExistsError):
            os.mkdir(self.path, 0o700)
        found = os.lstat(self.path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise ApplyRefusedError(
                f"{self.path} is in the way: it is not a folder of ours",
                f"look at it and remove it: ls -la {self.path}",
            )
        self.fd = os.open(self.path, FOLDER_FLAGS)
        self.fresh: set[str] = set()

    def close(self) -> None:
        os.close(self.fd)

    def fill(self, reader: TreeReader, wanted: Mapping[str, Entry]) -> None:
        """Write the files and links under these names from the snapshots, and make them durable."""
        by_hash: dict[bytes, list[str]] = {}
        for name, entry in wanted.items():
            self.drop(name)
            self.fresh.add(name)
            if entry.kind is Kind.LINK:
                os.symlink(entry.target, name, dir_fd=self.fd)
            elif entry.kind is Kind.FILE:
                by_hash.setdefault(entry.hash, []).append(name)
        labels = {key: shown(wanted[names[0]].path) for key, names in by_hash.items()}
        for key, pieces in reader.contents(labels):
            self._write(by_hash[key], pieces)
        for name, entry in wanted.items():
            times = (entry.mtime_ns, entry.mtime_ns)
            os.utime(name, ns=times, dir_fd=self.fd, follow_symlinks=False)

    def keep(self, name: str, folder: int, original: bytes) -> bool:
        """Hold on to a file of the user's itself; False where the file system cannot."""
        self.drop(name)
        try:
            os.link(original, name, src_dir_fd=folder, dst_dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            return False
        return True

    def has(self, name: str) -> bool:
        return name in os.listdir(self.fd)

    def holds(self, name: str, entry: Entry) -> bool:
        """Whether what was kept under this name still is the entry, whole."""
        with RootedFolder(self.path) as anchor:
            seen = read_path(anchor, name.encode(), hash_only)
        return seen is not None and same_state(seen.entry, entry)

    def copy_out(self, name: str, entry: Entry, folder: int, beside: str) -> None:
        """A copy of what is staged under `name`, in a folder on another file system."""
        if entry.kind is Kind.LINK:
            os.symlink(entry.target, beside, dir_fd=folder)
        else:
            with RootedFolder(
                self.path
            ) as anchor:  # which reads it also if its mode does not allow that
                staged = anchor.open(name.encode())
            _copy(staged, os.open(beside, _NEW, 0o600, dir_fd=folder))
            os.chmod(beside, entry.mode, dir_fd=folder)
        times = (entry.mtime_ns, entry.mtime_ns)
        os.utime(beside, ns=times, dir_fd=folder, follow_symlinks=False)

    def drop(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

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
        project = os.open(os.path.dirname(self.path), FOLDER_FLAGS)
        try:
            os.fsync(project)
        finally:
            os.close(project)

    def _write(self, names: list[str], pieces: Iterable[bytes]) -> None:
        first, *others = names
        with os.fdopen(self._open_new(first), "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        for name in others:
            _copy(os.open(first, _READ, dir_fd=self.fd), self._open_new(name))

    def _open_new(self, name: str) -> int:
        return os.open(name, _NEW, 0o600, dir_fd=self.fd)


def stage_path(project: str, owner: str) -> str:
    return os.path.join(project, PREFIX + owner)


def _copy(source: int, target: int) -> None:
    """Both are closed afterwards, and the copy is durable."""
    with os.fdopen(source, "rb") as one, os.fdopen(target, "wb") as two:
        shutil.copyfileobj(one, two)
        two.flush()
        os.fsync(two.fileno())
