"""Changing modes in a sandbox for a while, so that its owner can work with what is closed.

What a mode really is stands beside the sandbox before it changes: whoever comes after a kill puts
it back (ADR 0038).
In which order: the lock on the note; what a killed one had lent, deepest first, as what is above is
passed on the way; then for each path the note, the mode, the work, the mode back. A mode that
somebody has set meanwhile is left alone. What is not guaranteed: the note over a power cut, as it
is not synced.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress

_NAMED = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTE = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
LENT = ".lent"
_TO_READ = stat.S_IRUSR | stat.S_IXUSR


def note_beside(root: bytes) -> bytes:
    """The file that says what is lent; it goes with the sandbox."""
    return root.rstrip(b"/") + LENT.encode()


def put_back(root: bytes) -> None:
    """What a killed process had lent; for nearly all sandboxes nothing. Raises OSError."""
    with suppress(FileNotFoundError):
        if os.lstat(note_beside(root)).st_size:
            # Or by one that lives, and puts it back itself.
            with suppress(BlockingIOError):
                Lender(root, wait=False).close()


class Lender:
    """One at a time: nobody else may take a mode that is lent for the real one."""

    def __init__(self, root: bytes, *, wait: bool = True) -> None:
        """Takes back first what a killed one had lent. Raises OSError."""
        self._out: set[bytes] = set()
        self._note = os.open(note_beside(root), _NOTE, 0o600)
        try:
            fcntl.flock(self._note, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            self._modes = _written(self._note)
            self._take_all_back(root)
        except BaseException:
            os.close(self._note)
            raise

    def forget(self) -> None:
        """Whoever lent something has put it back, or has given it another mode on purpose."""
        self._out.clear()

    def close(self) -> None:
        """What is still lent the next one puts back."""
        try:
            if not self._out:
                os.ftruncate(self._note, 0)
        finally:
            os.close(self._note)

    def lend(self, fd: int, path: bytes, bits: int) -> int:
        """Give the owner these rights as well; the real mode comes back."""
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        if mode & bits != bits:
            os.write(self._note, b"%o %b\n" % (mode, path.hex().encode()))
            self._out.add(path)
            os.chmod(_place(fd), mode | bits)
        return mode

    def open(self, folder: int, path: bytes, flags: int) -> int:
        """As `os.open` of a path below the root in its open folder. Raises OSError."""
        above, _, name = path.rpartition(b"/")
        with self._readable(folder, above):
            handle = os.open(name, _NAMED, dir_fd=folder)
        if flags & os.O_PATH:
            return handle
        try:
            return self.reopen(handle, path, flags)
        finally:
            os.close(handle)

    def reopen(self, handle: int, path: bytes, flags: int) -> int:
        """What is named by `handle`, so that it can be read. Raises OSError."""
        if stat.S_ISLNK(os.fstat(handle).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        with self._readable(handle, path):
            return os.open(_place(handle), flags & ~os.O_NOFOLLOW)

    @contextmanager
    def _readable(self, fd: int, path: bytes) -> Generator[None]:
        mode = self.lend(fd, path, _TO_READ)
        try:
            yield
        finally:
            os.chmod(_place(fd), mode)
            self._out.discard(path)

    def _take_all_back(self, root: bytes) -> None:
        """Deepest first: what is above has to be passed on the way, and is lent for that."""
        while self._modes:
            path = max(self._modes, key=lambda path: (path.count(b"/") + bool(path), path))
            with suppress(FileNotFoundError, NotADirectoryError):
                self._take_back(root, path)
            del self._modes[path]
        self._out.clear()
        os.ftruncate(self._note, 0)

    def _take_back(self, root: bytes, path: bytes) -> None:
        here, fd = b"", os.open(root, _NAMED)
        try:
            for name in path.split(b"/") if path else []:
                self._modes.setdefault(here, self.lend(fd, here, _TO_READ))
                inner = os.open(name, _NAMED, dir_fd=fd)
                os.close(fd)
                here, fd = here + b"/" + name if here else name, inner
            found, mode = os.fstat(fd).st_mode, self._modes[path]
            if _is_lent(found, mode):
                os.chmod(_place(fd), mode)
        finally:
            os.close(fd)


def _written(note: int) -> dict[bytes, int]:
    """The first mode of a path is the real one. A line that was cut off is of something that was
    not lent yet."""
    modes: dict[bytes, int] = {}
    for line in os.pread(note, os.fstat(note).st_size, 0).split(b"\n")[:-1]:
        mode, path = line.split(b" ")
        modes.setdefault(bytes.fromhex(path.decode()), int(mode, 8))
    return modes


def _is_lent(found: int, mode: int) -> bool:
    """A step may have put something else there since."""
    return not stat.S_ISLNK(found) and stat.S_IMODE(found) | stat.S_IRWXU == mode | stat.S_IRWXU


def _place(fd: int) -> str:
    """A name that leads to what is open, whatever its path leads to by now."""
    return f"/proc/self/fd/{fd}"
