"""Owns reaching into a tree without ever following a link that something planted in it."""

import os
from contextlib import suppress
from types import TracebackType
from typing import Self

from cleveragents.infrastructure.snapshots.open_below import opener

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that somebody put there must not make anybody wait.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OWNER_ALL = 0o700


class Anchor:
    """Opens folders of a tree component by component, and keeps the chain of the last one open.

    With `open_up`, folders that we may not read or write are made so; `opened_up` remembers their
    modes for whoever puts them back.
    """

    def __init__(self, root: str | bytes, *, open_up: bool = False) -> None:
        self.root = os.fsencode(root)
        self._root = os.open(root, FOLDER_FLAGS)
        # Faster than by way of `place`. Raises OSError also where that would find a way in.
        self.open_file = opener(self._root, FILE_FLAGS)
        self._names: list[bytes] = []
        self._fds: list[int] = []
        self._open_up = open_up
        self.opened_up: dict[bytes, int] = {}
        if open_up:
            self._make_usable(self._root, b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._close_up()
        finally:
            self.let_go()
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

    def let_go(self) -> None:
        """Forget the open chain, because folders of it may have been replaced."""
        self._close_beyond(0)

    def _close_up(self) -> None:
        """Whoever changed the tree on purpose has emptied `opened_up`; the rest was only for us."""
        for path in sorted(self.opened_up, key=lambda path: path.count(b"/") + bool(path))[::-1]:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.fchmod(self.folder(path), self.opened_up[path])

    def _descend(self, name: bytes) -> None:
        parent = self._fds[-1] if self._fds else self._root
        fd = self._open(parent, name)
        self._names.append(name)
        self._fds.append(fd)
        if self._open_up:
            self._make_usable(fd, b"/".join(self._names))

    def _open(self, parent: int, name: bytes) -> int:
        try:
            return os.open(name, FOLDER_FLAGS, dir_fd=parent)
        except PermissionError:
            if not self._open_up:
                raise
        return self._open_by_force(parent, name)

    def _open_by_force(self, parent: int, name: bytes) -> int:
        # A folder that cannot be read can still be named; /proc leads from that name to itself
        # and, other than a path, cannot be turned into something else in between.
        handle = os.open(
            name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent
        )
        try:
            mode = os.fstat(handle).st_mode & 0o7777
            os.chmod(f"/proc/self/fd/{handle}", mode | _OWNER_ALL)
            self.opened_up[b"/".join((*self._names, name))] = mode
            return os.open(name, FOLDER_FLAGS, dir_fd=parent)
        finally:
            os.close(handle)

    def _make_usable(self, fd: int, path: bytes) -> None:
        mode = os.fstat(fd).st_mode & 0o7777
        if mode & _OWNER_ALL == _OWNER_ALL or path in self.opened_up:
            return
        self.opened_up[path] = mode
        os.fchmod(fd, mode | _OWNER_ALL)

    def _close_beyond(self, depth: int) -> None:
        for fd in self._fds[depth:]:
            os.close(fd)
        del self._fds[depth:], self._names[depth:]
