"""Owns copying a sandbox that nobody writes to, fast, with proof of what each copy was made from.

Other than `fs_copy`, which copies what is the user's and may change meanwhile, nothing is tried
again here: whatever does not go smoothly is an OSError, and the caller copies the careful way.
One thread does it all: several would wait for each other, as what they do is mostly system calls
too short to be worth the change (ADR 0026).
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field

from cleveragents.infrastructure.sandbox.fs_bytes import ByteCopy
from cleveragents.infrastructure.snapshots.adoption import Marks

_SMALL = 256 * 1024
_BLOCK = 512
_MODE_BITS = 0o7777
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class BranchCopy:
    """`hidden` names at the top are left out. Gives the marks of every path in the end."""

    source: bytes
    target: bytes
    hidden: frozenset[bytes]
    marks: dict[bytes, Marks] = field(default_factory=dict[bytes, Marks])
    _we: tuple[int, int] = field(default_factory=lambda: (os.geteuid(), os.getegid()))
    # Bits that a new file does not get by being made with them.
    _unsure: int = field(default_factory=lambda: _umask_now() | ~0o777)
    _bytes: ByteCopy = field(default_factory=ByteCopy)
    _folders: list[tuple[bytes, os.stat_result]] = field(
        default_factory=list[tuple[bytes, os.stat_result]]
    )

    def run(self) -> dict[bytes, Marks]:
        """The empty folder `target` becomes a copy. Raises OSError."""
        waiting = [b""]
        while waiting:
            waiting += self._copy_folder(waiting.pop())
        self._dress_folders()
        return self.marks

    def _copy_folder(self, folder: bytes) -> list[bytes]:
        """Its files and links; gives back the folders in it, which are made and still empty."""
        source = os.open(os.path.join(self.source, folder), _FOLDER)
        try:
            target = os.open(os.path.join(self.target, folder), _FOLDER)
            try:
                self._folders.append((folder, os.fstat(source)))
                return self._copy_entries(folder, source, target)
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _copy_entries(self, folder: bytes, source: int, target: int) -> list[bytes]:
        prefix = folder + b"/" if folder else b""
        folders: list[bytes] = []
        with os.scandir(source) as entries:
            found = [(os.fsencode(entry.name), entry) for entry in entries]
        marks, copy = self.marks, self._copy_file
        for name, entry in found:
            if not folder and name in self.hidden:
                continue
            if entry.is_file(follow_symlinks=False):
                marks[prefix + name] = copy(name, source, target)
            elif entry.is_dir(follow_symlinks=False):
                os.mkdir(name, 0o700, dir_fd=target)
                folders.append(prefix + name)
            elif entry.is_symlink():
                self.marks[prefix + name] = _copy_link(name, source, target)
        return folders

    def _copy_file(self, name: bytes, source: int, target: int) -> Marks:
        one = os.open(name, _READ, dir_fd=source)
        try:
            before = os.fstat(one)
            mode = before.st_mode & _MODE_BITS
            two = os.open(name, _NEW, mode & 0o777, dir_fd=target)
            try:
                self._copy_bytes(one, two, before)
                if before.st_uid != self._we[0] or before.st_gid != self._we[1]:
                    _give(two, before)  # before the mode, which it can change
                    os.fchmod(two, mode)
                elif mode & self._unsure:
                    os.fchmod(two, mode)
                os.utime(two, ns=(before.st_atime_ns, before.st_mtime_ns))
                return before, os.fstat(two)
            finally:
                os.close(two)
        finally:
            os.close(one)

    def _copy_bytes(self, one: int, two: int, found: os.stat_result) -> None:
        size = found.st_size
        small = size <= _SMALL and found.st_blocks * _BLOCK >= size
        # Small ones too are shared where that is possible: they are most of what takes room.
        if small and not self._bytes.may_share(found.st_dev):
            data = os.read(one, size)
            if len(data) == size and os.write(two, data) == size:
                return
            os.lseek(two, 0, os.SEEK_SET)
        self._bytes.copy(one, two, found)

    def _dress_folders(self) -> None:
        """From the inside: filling a folder changes its time, and it may be closed to us then."""
        for folder, found in sorted(self._folders, reverse=True):
            path = os.path.join(self.target, folder)
            fd = os.open(path, _FOLDER)
            try:
                _give(fd, found)
                os.fchmod(fd, stat.S_IMODE(found.st_mode))
                os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))
                if folder:
                    self.marks[folder] = found, os.fstat(fd)
            finally:
                os.close(fd)


def _copy_link(name: bytes, source: int, target: int) -> Marks:
    found = os.lstat(name, dir_fd=source)
    os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    times = (found.st_atime_ns, found.st_mtime_ns)
    os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)
    return found, os.lstat(name, dir_fd=target)


def _give(fd: int, found: os.stat_result) -> None:
    """To its owner, where we may."""
    with suppress(PermissionError):
        os.fchown(fd, found.st_uid, found.st_gid)


def _umask_now() -> int:
    """What the system takes from the mode of a new file; asking by `os.umask` would change it."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o777
