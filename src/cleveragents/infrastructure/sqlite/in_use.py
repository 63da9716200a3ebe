"""Who has a database open, as the kernel tells it: for writing, for reading, and by which lock.

A connection that is open and does nothing holds no lock, and still remembers pages. So locks alone
do not tell whether a database may be replaced: nobody may have it open for writing.
"""

import fcntl
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from cleveragents.infrastructure.processes.marked import told
from cleveragents.infrastructure.sqlite.side_files import (
    INDEX,
    LAST,
    LOG,
    PENDING,
    lock_of,
)

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Users(Struct, frozen=True, kw_only=True):
    """Other processes, by number and name, as far as we may see what they have open. `is_written`:
    somebody has it open for writing, seen or not. `is_locked`: somebody has a lock on it."""

    writers: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    is_written: bool = False
    is_locked: bool = False

    @property
    def is_in_use(self) -> bool:
        return bool(self.writers) or self.is_written or self.is_locked

    @property
    def named(self) -> tuple[str, ...]:
        """Who keeps it; a reader does where there is a log, by its lock."""
        return self.writers or (self.readers if self.is_locked else ())


def users_of(path: str) -> Users:
    """Of the database there; nobody of what is no file. We have it not open ourselves."""
    if not _is_file(path):
        return Users()
    writers, readers = _processes(path)
    try:
        fd = os.open(path, _READ)
    except OSError:  # gone by now, or closed even to its owner
        return Users(writers=writers, readers=readers)
    try:
        # A lock for writing would meet every lock of SQLite's, and is only asked about.
        return Users(
            writers=writers,
            readers=readers,
            is_written=_is_open_for_writing(fd),
            is_locked=lock_of(fd, PENDING, LAST, fcntl.F_WRLCK),
        )
    finally:
        os.close(fd)


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_open_for_writing(fd: int) -> bool:
    """By a lease, which the kernel gives for reading only if nobody at all has the file open for
    writing. Where there are none, or the file is another user's, it is what can be seen."""
    try:
        # Who opens it meanwhile waits, and we are told so by a signal: one that ends nobody.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _processes(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that have it open, or its log: for writing, and for reading only."""
    wanted = {found for name in (path, path + LOG, path + INDEX) if (found := _identity(name))}
    writers: list[str] = []
    readers: list[str] = []
    for process in _others():
        modes = list(_open_modes(process, wanted))
        if modes:
            (writers if any(modes) else readers).append(told(process))
    return tuple(writers), tuple(readers)


def _others() -> Iterator[int]:
    with suppress(FileNotFoundError):  # where there is no /proc, leases and locks tell
        for name in os.listdir("/proc"):
            if name.isdecimal() and int(name) != os.getpid():
                yield int(name)


def _open_modes(process: int, wanted: set[tuple[int, int]]) -> Iterator[bool]:
    """Of each descriptor of one of these files: whether it is open for writing."""
    folder = f"/proc/{process}/fd"
    with suppress(OSError):  # it ended, or belongs to somebody else
        for name in os.listdir(folder):
            link = f"{folder}/{name}"
            if _identity(link, follow=True) in wanted:
                yield bool(os.lstat(link).st_mode & stat.S_IWUSR)


def _identity(path: str, *, follow: bool = False) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=follow)
    except OSError:
        return None
    return found.st_dev, found.st_ino
