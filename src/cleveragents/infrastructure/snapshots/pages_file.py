"""Owns the database file of a sandbox: what is there, its locks, its journals, and its marks."""

import fcntl
import os
import sqlite3
import stat
import struct
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from urllib.parse import quote

from cleveragents.domain.errors import (
    RestoreFailedError,
    SandboxMissingError,
    SnapshotFailedError,
)
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.snapshots.entry import Kind

LOCK_SECONDS = 10.0
_PAUSE = 0.02
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Where SQLite itself locks: the pending byte, the reserved byte and 510 shared ones.
_LOCK_START, _LOCK_LENGTH = 0x40000000, 512
_SIDE_FILES = ("-wal", "-shm", "-journal")
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_SQLITE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFLNK: Kind.LINK, stat.S_IFDIR: Kind.DIR}
# CLOCK_REALTIME_COARSE of Linux: the times of files are taken from it.
_COARSE_CLOCK = 5
# Waiting for the next tick of the clock is worth it where it saves reading this much.
_WORTH_WAITING = 16 * 1024 * 1024


class DatabaseFile:
    def __init__(self, resource: PlanResource) -> None:
        self.path = resource.sandbox_path
        self.folder, self.name = os.path.split(resource.sandbox_path)
        self.resource = resource

    def look(self) -> os.stat_result | None:
        """The status of what is there; raises SandboxMissingError without the folder around it."""
        if os.path.islink(self.folder) or not os.path.isdir(self.folder):
            raise SandboxMissingError(self.resource.name, self.folder)
        try:
            return os.lstat(self.path)
        except FileNotFoundError:
            return None

    def strangers(self) -> tuple[str, ...]:
        """Names beside the database that belong to no snapshot."""
        ours = {self.name, *(self.name + suffix for suffix in _SIDE_FILES)}
        return tuple(sorted(set(os.listdir(self.folder)) - ours))

    def is_quiet(self) -> bool:
        """No journal holds anything, so that the file is all there is."""
        return not any(_size(self.path + suffix) for suffix in ("-wal", "-journal"))

    @contextmanager
    def held(self) -> Generator[int]:
        """The open file, folded and held still for reading. Raises SnapshotFailedError."""
        fd = self._open(os.O_RDONLY)
        # Closed last: closing any descriptor of a file ends this process's locks on it.
        try:
            with closing(self._folded()):
                yield fd
        finally:
            os.close(fd)

    @contextmanager
    def taken(self) -> Generator[int]:
        """The open file for writing, with every other connection locked out. Raises
        RestoreFailedError."""
        fd = self._open(os.O_RDWR)
        try:
            self._lock(fd)
            yield fd
        finally:
            os.close(fd)

    def drop_journals(self) -> None:
        """They belong to other content than the file is about to have."""
        for suffix in _SIDE_FILES:
            with suppress(FileNotFoundError):
                os.unlink(self.path + suffix)
        self.sync_folder()

    def sync_folder(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _open(self, flags: int) -> int:
        fd = os.open(self.path, flags | _FLAGS)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise SnapshotFailedError(
                f"no snapshot could be taken: {self.path} became something else than a file",
                "stop what works in the sandbox and try again",
            )
        return fd

    def _folded(self) -> sqlite3.Connection:
        address = f"file:{quote(os.fsencode(self.path))}?mode=rw"
        db = sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS, isolation_level=None)
        try:
            self._fold(db)
        except sqlite3.Error as error:
            db.close()
            raise self._in_use(error) from error
        except BaseException:
            db.close()
            raise
        return db

    def _fold(self, db: sqlite3.Connection) -> None:
        """Bring everything into the file itself, and keep writers out from then on.

        With an empty write-ahead log the reader keeps others from folding a new one in.
        """
        deadline = time.monotonic() + LOCK_SECONDS
        try:
            while time.monotonic() < deadline:
                busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                db.execute("BEGIN")
                db.execute("PRAGMA schema_version").fetchone()
                if not busy and not _size(self.path + "-wal"):
                    return
                db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if error_code(error) in _NOT_SQLITE:
                return  # plain bytes then; whether they held still is seen afterwards
            raise
        raise self._in_use(None)

    def _lock(self, fd: int) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _LOCK_START, _LOCK_LENGTH, 0)
        while True:
            try:
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise RestoreFailedError(
                        self.resource.name, f"{self.path} is in use by another process"
                    ) from error
                time.sleep(_PAUSE)
            else:
                return

    def _in_use(self, error: sqlite3.Error | None) -> SnapshotFailedError:
        if error is None or error_code(error) in _BUSY:
            return SnapshotFailedError(
                f"no snapshot could be taken: {self.path} is in use by another process",
                "end what the tool left running with the database open, then resume the plan",
            )
        return SnapshotFailedError(
            f"no snapshot could be taken: {self.path}: {error}",
            "look at the file; rolling back brings an earlier state of it back",
        )


def kind_of(found: os.stat_result | None) -> Kind | None:
    """None for a pipe, a socket or a device."""
    return _KINDS.get(stat.S_IFMT(found.st_mode)) if found else Kind.GONE


def marks_of(found: os.stat_result) -> str:
    """The next write changes these, unless it comes within the clock tick of the last one."""
    facts = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)
    return " ".join(str(fact) for fact in (*facts, found.st_mode))


def reliable_marks(fd: int) -> str:
    """Marks that any write from now on will change; empty where that cannot be promised."""
    found = os.fstat(fd)
    # Two ticks of the slowest clock.
    deadline = time.monotonic() + 0.02
    while found.st_ctime_ns >= time.clock_gettime_ns(_COARSE_CLOCK):
        if found.st_size < _WORTH_WAITING or time.monotonic() > deadline:
            return ""
        time.sleep(0.001)
    return marks_of(found)


def error_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0
