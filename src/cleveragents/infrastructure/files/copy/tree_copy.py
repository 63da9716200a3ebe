"""Copying a folder whole: names as bytes, exact modes and times, links as links.

In which order: folders from the top, closed to others while they are filled; in them links, and
files, which are copied again if their status has moved while they were read; modes and times of
folders from the inside out, as filling one moves its time, and a mode may close it to us.
What is not guaranteed: one instant. Files that are copied one after the other may be of different
moments; a single file is of one.
"""

import errno
import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from msgspec import Struct, field

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.files.copy.clone_bytes import ByteCopy
from cleveragents.infrastructure.files.copy.one_file import dress
from cleveragents.infrastructure.files.entry import shown
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.layers.overlay_marks import (
    is_opaque,
    is_whiteout,
    make_whiteout,
    set_opaque,
)
from cleveragents.infrastructure.files.rooted_folder import RootedFolder

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_ATTEMPTS = 5
_PAUSE = 0.02
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_folder(source: str, target: str, exclude: Excludes, *, sandbox: bool = False) -> None:
    """Fill the empty folder `target`. Raises SandboxError; what was copied so far stays then.

    `sandbox` says that the source is one.
    """
    with RootedFolder(source, sandbox=sandbox) as one, RootedFolder(target) as two:
        FolderCopy(one, two, exclude).run()


class _SourceMovedError(Exception):
    """The path changed while it was copied."""


class FolderCopy(Struct):
    source: RootedFolder
    target: RootedFolder
    exclude: Excludes
    _bytes: ByteCopy = field(default_factory=ByteCopy)

    def run(self, top: bytes = b"") -> None:
        """Fill the folder `top` of the target, which is there and empty. Raises SandboxError."""
        folders: list[tuple[bytes, os.stat_result]] = []
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            with _named(folder):
                folders.append((folder, os.fstat(self.source.folder(folder))))
                names = self._names(folder)
            for path in names:
                if self._copy(path):
                    waiting.append(path)
        # From the inside: filling a folder changes its time, and it may be closed to us then.
        for folder, found in reversed(folders):
            with _named(folder):
                target = self.target.folder(folder)
                set_opaque(target, wanted=is_opaque(self.source.folder(folder)))
                dress(target, found)

    def _names(self, folder: bytes) -> list[bytes]:
        prefix = folder + b"/" if folder else b""
        with os.scandir(self.source.folder(folder)) as entries:
            inner = [
                (prefix + os.fsencode(e.name), e.is_dir(follow_symlinks=False)) for e in entries
            ]
        return [path for path, is_folder in inner if (path, is_folder) not in self.exclude]

    def _copy(self, path: bytes) -> bool:
        """True for a folder, which is made and still has to be filled."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE * attempt)
            with suppress(_SourceMovedError), _named(path):
                return self._copy_once(path)
        raise SandboxError(
            f"no copy could be made: {shown(path)!r} keeps changing while it is copied",
            "stop what writes to it, or name it under `exclude`",
        )

    def _copy_once(self, path: bytes) -> bool:
        try:
            found = self.source.status(path)
        except FileNotFoundError:
            return False  # gone since its folder was listed
        there, name = self.target.place(path)
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(name, 0o700, dir_fd=there)
            return True
        if stat.S_ISLNK(found.st_mode):
            self._copy_link(path, name, there, found)
        elif stat.S_ISREG(found.st_mode):
            self._copy_file(path, name, there)
        elif is_whiteout(found):
            make_whiteout(name, dir_fd=there)
        return False  # a socket, pipe or device has no content to take along

    def _copy_link(self, path: bytes, name: bytes, there: int, found: os.stat_result) -> None:
        try:
            target = self.source.link_target(path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINVAL):
                raise _SourceMovedError from error
            raise
        os.symlink(target, name, dir_fd=there)
        times = (found.st_atime_ns, found.st_mtime_ns)
        os.utime(name, ns=times, dir_fd=there, follow_symlinks=False)

    def _copy_file(self, path: bytes, name: bytes, there: int) -> None:
        source = self._opened(path)
        try:
            before = os.fstat(source)
            if not stat.S_ISREG(before.st_mode):
                raise _SourceMovedError
            target = os.open(name, _WRITE, 0o600, dir_fd=there)
            try:
                self._bytes.copy(source, target, before)
                if _marks(os.fstat(source)) != _marks(before):
                    raise _SourceMovedError
                dress(target, before)
            except _SourceMovedError:
                os.unlink(name, dir_fd=there)
                raise
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _opened(self, path: bytes) -> int:
        try:
            return self.source.open(path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
                raise _SourceMovedError from error
            raise


@contextmanager
def _named(path: bytes) -> Generator[None]:
    """Turns the system's errors into ours, with the path in them."""
    where = shown(path) or "."
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise SandboxError(
                f"there is no room for a copy: the disk was full at {where!r}",
                "free some space, or name what the plan does not need under `exclude`",
            ) from error
        raise SandboxError(
            f"{where!r} cannot be copied ({error.strerror})",
            "make it readable, or name it under `exclude`",
        ) from error


def _marks(found: os.stat_result) -> tuple[int, ...]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode
