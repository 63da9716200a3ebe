"""Reaching into a tree without ever following a link that something planted in it.

A path is opened component by component, each from the open folder above it and never through a
link, so that what is at the end lies below the root, whatever is renamed meanwhile; `open_file`
has the kernel do the same in one call. The chain of the last path stays open for the next one, and
who replaces folders closes it first.
What is not guaranteed: that a path still leads where it did. What was opened stays what it was, and
may lie elsewhere by now.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Self

from cleveragents.infrastructure.files.closed_files import open_closed
from cleveragents.infrastructure.files.lent_modes import Lender, put_back

# openat2 has the same number on every architecture.
_OPENAT2 = 437
_NO_LINKS = 0x04
_BENEATH = 0x08


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def opener(folder: int, flags: int) -> Callable[[bytes], int]:
    """Gives a descriptor of what is at a path below `folder`; no part of it may be a link.

    What it gives raises OSError, with ENOSYS where the system has no such call.
    """
    # Made once, because for each file it would take as long as the call itself.
    how = _How(flags, 0, _NO_LINKS | _BENEATH)
    number, place, size = ctypes.c_long(_OPENAT2), ctypes.c_long(folder), ctypes.sizeof(how)
    behind = ctypes.byref(how), ctypes.c_size_t(size)
    syscall = _syscall()

    def open_below(path: bytes) -> int:
        if b"\0" in path:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fd: int = syscall(number, place, path, *behind)
        if fd < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return fd

    return open_below


@cache
def _syscall() -> Any:
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    return syscall


FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that somebody put there must not make anybody wait.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAMED_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_OWNER_ALL = 0o700


class RootedFolder:
    """Opens folders of a tree component by component, and keeps the chain of the last one open.

    What is ours and has no read permission is read nevertheless: without a change of its mode, or
    in a `sandbox`, if nothing else helps, with one for a moment. With `open_up`, folders that we
    may not read or write are made so; `opened_modes` keeps their modes for whoever puts them back.
    """

    def __init__(self, root: str | bytes, *, open_up: bool = False, sandbox: bool = False) -> None:
        self.root = os.fsencode(root)
        self._names: list[bytes] = []
        self._fds: list[int] = []
        self._open_up = open_up
        self._sandbox = sandbox
        self._lender: Lender | None = None
        self.opened_modes: dict[bytes, int] = {}
        if sandbox:
            put_back(self.root)
        self._root = self._open_root()
        # Faster than by way of `place`. Raises OSError also where that would find a way in.
        self.open_file = opener(self._root, FILE_FLAGS)
        if open_up:
            self._make_usable(self._root, b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._close_up()
        finally:
            if self._lender is not None:
                self._lender.close()
            self.close_chain()
            os.close(self._root)

    def folder(self, path: bytes) -> int:
        """A descriptor of the folder, ours to use until the next call."""
        names = path.split(b"/") if path else []
        shared = 0
        while shared < min(len(names), len(self._names)) and names[shared] == self._names[shared]:
            shared += 1
        self._close_beyond(shared)
        for name in names[shared:]:
            self._descend(name)
        return self._fds[-1] if self._fds else self._root

    def identity(self) -> tuple[int, int]:
        """Which folder the root is, whatever its path may lead to by now."""
        found = os.fstat(self._root)
        return found.st_dev, found.st_ino

    def place(self, path: bytes) -> tuple[int, bytes]:
        """The folder that holds `path`, and its name in there."""
        parent, _, name = path.rpartition(b"/")
        return self.folder(parent), name

    def status(self, path: bytes) -> os.stat_result:
        """What is there itself, be it a link. Raises OSError."""
        folder, name = self.place(path)
        try:
            return os.lstat(name, dir_fd=folder)
        except PermissionError:
            fd = self._open_closed(folder, path, _NAMED_FLAGS)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def open(self, path: bytes, flags: int = FILE_FLAGS) -> int:
        """For reading. Raises OSError."""
        folder, name = self.place(path)
        try:
            return os.open(name, flags, dir_fd=folder)
        except PermissionError:
            return self._open_closed(folder, path, flags)

    def link_target(self, path: bytes) -> bytes:
        """Raises OSError, with EINVAL or ENOENT if there is no link."""
        folder, name = self.place(path)
        try:
            return os.readlink(name, dir_fd=folder)
        except PermissionError:
            fd = self._open_closed(folder, path, _NAMED_FLAGS)
        try:
            return os.readlink(b"", dir_fd=fd)
        finally:
            os.close(fd)

    def close_chain(self) -> None:
        """Forget the open chain, because folders of it may have been replaced."""
        self._close_beyond(0)

    def _close_up(self) -> None:
        """Who changed the tree on purpose has emptied `opened_modes`; the rest was only for us."""
        for path in sorted(self.opened_modes, key=lambda path: path.count(b"/") + bool(path))[::-1]:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.fchmod(self.folder(path), self.opened_modes[path])
        if self._lender is not None:
            self._lender.forget()

    def _descend(self, name: bytes) -> None:
        parent = self._fds[-1] if self._fds else self._root
        path = b"/".join((*self._names, name))
        fd = self._open(parent, name, path)
        self._names.append(name)
        self._fds.append(fd)
        if self._open_up:
            self._make_usable(fd, path)

    def _open_root(self) -> int:
        try:
            return os.open(self.root, FOLDER_FLAGS)
        except PermissionError:
            handle = os.open(self.root, _NAMED_FLAGS | os.O_DIRECTORY)
        try:
            if self._open_up:
                self._lend(handle, b"")
                return os.open(self.root, FOLDER_FLAGS)
            return self._root_without_change(handle)
        finally:
            os.close(handle)

    def _root_without_change(self, handle: int) -> int:
        above, name = os.path.split(self.root.rstrip(b"/"))
        parent = os.open(above, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return open_closed(parent, name, FOLDER_FLAGS)
        except PermissionError:
            with self._lending() as lender:
                return lender.reopen(handle, b"", FOLDER_FLAGS)
        finally:
            os.close(parent)

    def _open(self, parent: int, name: bytes, path: bytes) -> int:
        try:
            return os.open(name, FOLDER_FLAGS, dir_fd=parent)
        except PermissionError:
            if not self._open_up:
                return self._open_closed(parent, path, FOLDER_FLAGS)
        # A folder that cannot be read can still be named.
        handle = os.open(name, _NAMED_FLAGS | os.O_DIRECTORY, dir_fd=parent)
        try:
            self._lend(handle, path)
            return os.open(name, FOLDER_FLAGS, dir_fd=parent)
        finally:
            os.close(handle)

    def _open_closed(self, folder: int, path: bytes, flags: int) -> int:
        try:
            return open_closed(folder, path.rpartition(b"/")[2], flags)
        except PermissionError:
            with self._lending() as lender:
                return lender.open(folder, path, flags)

    @contextmanager
    def _lending(self) -> Generator[Lender]:
        """Raises PermissionError where modes are not ours to change."""
        if not self._sandbox:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if self._lender is not None:
            yield self._lender
            return
        lender = self._new_lender()
        try:
            yield lender
        finally:
            lender.close()

    def _new_lender(self) -> Lender:
        try:
            return Lender(self.root)
        except OSError as error:
            # Nothing that is missing beside the sandbox may look as if it were missing in it.
            raise PermissionError(errno.EACCES, str(error)) from error

    def _make_usable(self, fd: int, path: bytes) -> None:
        if path not in self.opened_modes and os.fstat(fd).st_mode & _OWNER_ALL != _OWNER_ALL:
            self._lend(fd, path)

    def _lend(self, fd: int, path: bytes) -> None:
        """Until the end, or until whoever changes the tree has decided on its mode."""
        mode = os.fstat(fd).st_mode & 0o7777
        if self._sandbox:
            self._lender = self._lender or self._new_lender()
            self._lender.lend(fd, path, _OWNER_ALL)
        else:
            # /proc leads to the folder itself and, other than a path, to nothing else.
            os.chmod(f"/proc/self/fd/{fd}", mode | _OWNER_ALL)
        self.opened_modes[path] = mode

    def _close_beyond(self, depth: int) -> None:
        for fd in self._fds[depth:]:
            os.close(fd)
        del self._fds[depth:], self._names[depth:]
