"""Reading a user's database without leaving a trace in it or beside it.

A write-ahead log is never folded, and no `-wal` or `-shm` appears where there was none. Of its
pages SQLite looks at nothing but the header here: once a plan is applied, a step may have written
them. Any statement that asks for the schema would read on (ADR 0053).
"""

import errno
import fcntl
import os
import sqlite3
import struct
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from urllib.parse import quote

from cleveragents.infrastructure.files.copy.clone_bytes import copy_bytes
from cleveragents.infrastructure.files.data_folder import make_private
from cleveragents.infrastructure.files.descriptors import opened

MAGIC = b"SQLite format 3\0"
BUSY_SECONDS = 30.0
_PAUSE = 0.05
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# The bytes on which SQLite's readers hold their lock.
_SHARED_START, _SHARED_LENGTH = 0x40000002, 510


class BusyError(Exception):
    """Somebody else kept the database locked for too long."""


def is_busy(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return isinstance(error, BusyError) or code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class SourceMovedError(Exception):
    """The database came into use while it was copied."""


def address(path: str, options: str) -> str:
    return f"file:{quote(os.fsencode(path))}?{options}"


def open_database(path: str, options: str, timeout: float | None = None) -> sqlite3.Connection:
    """Waits for locks of others up to `timeout`, or else as long as is reasonable."""
    wait = BUSY_SECONDS if timeout is None else timeout
    return sqlite3.connect(address(path, options), uri=True, timeout=wait, isolation_level=None)


def uses_wal(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(20)[18:] == b"\2\2"


def probe(path: str) -> None:
    """Really open it. Raises sqlite3.Error."""
    # Immutable, for opening a write-ahead log that nobody has open would leave files behind.
    idle_wal = uses_wal(path) and not os.path.exists(path + "-shm")
    with closing(open_database(path, "immutable=1" if idle_wal else "mode=ro")) as db:
        db.execute("PRAGMA schema_version").fetchone()


def copy_database(path: str, target: str) -> None:
    """A consistent copy at `target`, where nothing may be; it is folded, and may be in use.

    Raises BusyError, sqlite3.Error or OSError.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while time.monotonic() < deadline:
        try:
            return _copy(path, target, deadline)
        except SourceMovedError:
            _remove(target)
    raise BusyError(path)


def _copy(path: str, target: str, deadline: float) -> None:
    if not uses_wal(path):
        # Without a lock of ours: a writer that waits for it to end would keep SQLite waiting.
        return copy_in_use(path, target, deadline)
    with _shared(path, deadline) as fd:
        # While we hold this lock nobody can remove the files of a log in use.
        if os.path.exists(path + "-shm"):
            return copy_in_use(path, target, deadline)
        return _copy_idle(path, fd, target)


def copy_in_use(path: str, target: str, deadline: float) -> None:
    """The same through SQLite alone, which must not be mixed with descriptors of our own: closing
    one ends the locks that this process's connections hold on the file."""

    def wait(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise BusyError(path)

    with closing(open_database(path, "mode=ro")) as source, closing(_new(target)) as copy:
        if not os.path.getsize(path):
            return  # SQLite would make a page of nothing
        # All at once: a copy in parts begins again with every write of somebody else. The header
        # comes along, and in it the journal mode.
        source.backup(copy, progress=wait, sleep=_PAUSE)


@contextmanager
def consistent_file(path: str, scratch_dir: str) -> Generator[int]:
    """An open file that holds what the database holds: itself where that can be held still."""
    if not uses_wal(path):
        with opened(path, _READ) as fd, closing(open_database(path, "mode=ro")) as db:
            db.execute("BEGIN")
            db.execute("PRAGMA schema_version").fetchone()
            yield fd
        return
    with private_folder(scratch_dir) as folder:
        copy = os.path.join(folder, "copy.db")
        copy_database(path, copy)
        with opened(copy, _READ) as fd:
            yield fd


@contextmanager
def private_folder(scratch_dir: str) -> Generator[str]:
    make_private(scratch_dir)
    with tempfile.TemporaryDirectory(dir=scratch_dir, prefix="sqlite-") as folder:
        yield folder


def _copy_idle(path: str, fd: int, target: str) -> None:
    """Nobody has it open: the files are all there is, as long as that stays so."""
    before = _marks(path)
    _copy_file(fd, target)
    with suppress(FileNotFoundError), opened(path + "-wal", _READ) as log:
        _copy_file(log, target + "-wal")
    if os.path.exists(path + "-shm") or _marks(path) != before:
        raise SourceMovedError
    with closing(open_database(target, "mode=rw")) as db:
        # Whoever closes the last connection folds the log in; asking for that reads the schema.
        db.execute("PRAGMA schema_version").fetchone()
    if os.path.exists(target + "-wal"):
        raise OSError(errno.EIO, "the log of the copy could not be folded", target)


def _copy_file(source: int, target: str) -> None:
    with open(target, "wb", opener=_private) as file:
        copy_bytes(source, file.fileno(), os.fstat(source).st_size)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _new(target: str) -> sqlite3.Connection:
    os.close(_private(target, os.O_RDWR | os.O_CREAT))
    db = open_database(target, "mode=rw")
    db.execute("PRAGMA synchronous=OFF")  # whoever keeps the copy syncs it once, at the end
    return db


def _marks(path: str) -> list[tuple[int, int, int, int] | None]:
    found: list[tuple[int, int, int, int] | None] = []
    for name in (path, path + "-wal"):
        try:
            status = os.stat(name)
        except FileNotFoundError:
            found.append(None)
        else:
            facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            found.append(facts)
    return found


def _remove(target: str) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(target + suffix)


@contextmanager
def _shared(path: str, deadline: float) -> Generator[int]:
    """The open file with a reader's lock, which belongs to this descriptor alone."""
    fd = os.open(path, _READ)
    request = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, _SHARED_START, _SHARED_LENGTH, 0)
    try:
        while not _locked(fd, request):
            if time.monotonic() > deadline:
                raise BusyError(path)
            time.sleep(_PAUSE)
        yield fd
    finally:
        os.close(fd)


def _locked(fd: int, request: bytes) -> bool:
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
    except BlockingIOError:
        return False
    return True
