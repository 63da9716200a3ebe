"""The database file of a sandbox: what is there, its locks, its journals, and its marks.

A step wrote it, so that here it is bytes; whoever asks SQLite about it does so inside (ADR 0052).
"""

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from cleveragents.domain.errors import (
    RestoreFailedError,
    SandboxMissingError,
    SnapshotFailedError,
)
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.closed_files import open_closed
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.sqlite.answers import RefusedInsideError
from cleveragents.infrastructure.sqlite.messages import BUSY, NO_DATABASE
from cleveragents.infrastructure.sqlite.side_files import (
    LAST,
    PENDING,
    SHARED,
    SIDE_FILES,
    is_alone,
    is_quiet,
    lock_request,
    posing,
)
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers, LostInsideError, place_of

LOCK_SECONDS = 10.0
_PAUSE = 0.02
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFLNK: Kind.LINK, stat.S_IFDIR: Kind.DIR}
# CLOCK_REALTIME_COARSE of Linux: the times of files are taken from it.
_COARSE_CLOCK = 5
# Waiting for the next tick of the clock is worth it where it saves reading this much.
_WORTH_WAITING = 16 * 1024 * 1024


class DatabaseMovedError(Exception):
    """The file changed while it was read."""


class HeldDatabase(NamedTuple):
    """The open file, held still; `notes` tell what was unusual about it. Of a copy, whose original
    may go on, `marks` are those that the original had before."""

    fd: int
    notes: tuple[str, ...] = ()
    marks: str | None = None


class DatabaseFile:
    def __init__(self, resource: PlanResource, workers: DatabaseWorkers) -> None:
        self.path = resource.sandbox_path
        self.folder, self.name = os.path.split(resource.sandbox_path)
        self.resource = resource
        self._workers = workers

    def look(self) -> os.stat_result | None:
        """The status of what is there; raises SandboxMissingError without the folder around it."""
        if os.path.islink(self.folder) or not os.path.isdir(self.folder):
            resource = self.resource
            raise SandboxMissingError(resource.name, self.folder, resource.store_id)
        try:
            return os.lstat(self.path)
        except FileNotFoundError:
            return None

    def strangers(self) -> tuple[str, ...]:
        """Names beside the database that belong to no snapshot."""
        strange = {self.name + suffix for suffix in posing(self.path)}
        ours = {self.name, *(self.name + suffix for suffix in SIDE_FILES)} - strange
        return tuple(sorted(set(os.listdir(self.folder)) - ours))

    @property
    def draft(self) -> str:
        """Where a whole new file is made, to take the place of what is there by one rename."""
        return os.path.join(self.folder, f".cleveragents-restore-{self.name}")

    def is_quiet(self) -> bool:
        """No journal holds anything, so that the file is all there is."""
        return is_quiet(self.path)

    def marks(self, found: os.stat_result) -> str:
        """By which it is known without reading that nothing changed; empty where they do not tell
        all of it."""
        return marks_of(found) if self.is_quiet() else ""

    def can_be_written(self, found: os.stat_result) -> bool:
        """Whether it can be changed page by page where it is."""
        # A file with a second name is replaced: writing would reach through to the other one.
        return (
            stat.S_ISREG(found.st_mode)
            and found.st_nlink == 1
            and os.access(self.path, os.R_OK | os.W_OK)
        )

    def begin(self, fd: int, pages: Collection[int], size: int) -> None:
        """Called before these pages are written, and the file gets this size."""
        del fd, pages, size
        self.drop_journals()

    def commit(self) -> None:
        """Called once all of it is written, synced and proven."""

    def open(self) -> int:
        """For reading its bytes, without any lock."""
        return self._open(os.O_RDONLY)

    @contextmanager
    def held(self) -> Generator[HeldDatabase]:
        """The file with all that its journals held. Raises SnapshotFailedError, and MovedError if
        it was not held still after all."""
        fd = self.open()
        try:
            if not self._locked(fd, fcntl.F_RDLCK, SHARED):
                raise self._in_use()
            if is_alone(self.path):
                # With this lock nobody can write in the file, nor fold a log in and remove it.
                yield HeldDatabase(fd)
                if not is_alone(self.path):
                    raise DatabaseMovedError
            elif posing(self.path):
                yield HeldDatabase(fd)  # SQLite cannot have written what poses as its journals
            else:
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, lock_request(fcntl.F_UNLCK, SHARED, LAST))
                with self._folded() as notes:
                    yield HeldDatabase(fd, notes)
        finally:
            os.close(fd)

    @contextmanager
    def taken(self) -> Generator[int]:
        """The open file for writing, with every other connection locked out. Raises
        RestoreFailedError."""
        fd = self._open(os.O_RDWR)
        try:
            if not self._locked(fd, fcntl.F_WRLCK, PENDING):
                raise RestoreFailedError(
                    self.resource.name, f"{self.path} is in use by another process"
                )
            yield fd
        finally:
            os.close(fd)

    def drop_journals(self) -> None:
        """They belong to other content than the file is about to have."""
        drop_journals(self.path)
        self.sync_folder()

    def sync_folder(self) -> None:
        with opened(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as folder:
            os.fsync(folder)

    def _open(self, flags: int) -> int:
        fd = self._opened(flags | _FLAGS)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise SnapshotFailedError(
                f"no snapshot could be taken: {self.path} became something else than a file",
                "stop what works in the sandbox and try again",
            )
        return fd

    def _opened(self, flags: int) -> int:
        try:
            return os.open(self.path, flags)
        except PermissionError:
            if flags & os.O_RDWR:
                raise
        with opened(self.folder, _FOLDER) as folder:  # its owner may have closed it to himself
            return open_closed(folder, os.fsencode(self.name), flags)

    @contextmanager
    def _folded(self) -> Generator[tuple[str, ...]]:
        try:
            with ExitStack() as stack:
                yield self._fold(stack)
        except LostInsideError as error:
            raise DatabaseMovedError from error  # whoever held it died, and the lock with it

    def _fold(self, stack: ExitStack) -> tuple[str, ...]:
        """Bring everything into the file itself, and keep writers out as long as `stack` lasts."""
        try:
            return stack.enter_context(self._workers.held(place_of(self.resource), LOCK_SECONDS))
        except RefusedInsideError as error:
            if error.kind != NO_DATABASE:
                raise self._in_use(error) from error
            return ()  # plain bytes then; whether they held still is seen afterwards
        except LostInsideError as error:
            if error.late:
                raise self._in_use(error) from error
            # The same: what SQLite dies of is no database, and going back must stay possible.
            return (f"{self.name} was taken as it is, without its journals: {error}",)

    def _locked(self, fd: int, kind: int, first: int) -> bool:
        """Wait for the lock of this open file alone; False if others keep theirs for too long."""
        deadline = time.monotonic() + LOCK_SECONDS
        request = lock_request(kind, first, LAST)
        while True:
            try:
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_PAUSE)
            else:
                return True

    def _in_use(self, error: Exception | None = None) -> SnapshotFailedError:
        if error is None or getattr(error, "kind", "") == BUSY:
            return SnapshotFailedError(
                f"no snapshot could be taken: {self.path} is in use by another process",
                "end what the tool left running with the database open, then resume the plan",
            )
        return SnapshotFailedError(
            f"no snapshot could be taken: {self.path}: {error}",
            f"look at the file and its journals in {self.folder}; without these, going back works",
        )


def drop_journals(path: str) -> None:
    """Whatever stands in their place too."""
    for suffix in SIDE_FILES:
        clear(path + suffix)


def clear(path: str) -> None:
    """Remove what is there, if anything, without following it."""
    if os.path.islink(path) or not os.path.isdir(path):
        if os.path.lexists(path):
            os.unlink(path)
        return
    shutil.rmtree(path)


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
