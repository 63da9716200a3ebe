"""The user's own database file: read as SQLite's readers do, written only under its own locks.

Reading: what is committed, with its log, and without a transaction that somebody is in. Where the
file is not all there is, it and its journals are copied to a private folder while a lock keeps them
together, and SQLite folds the copy, inside (ADR 0052). Nothing of the user's is changed by that.
Writing: with every other connection locked out, and nobody who has it open for writing. What
journals hold goes into the file first, as SQLite itself would do it. Then a rollback journal of
SQLite's own format has the old pages until all new ones are written and synced (ADR 0103).
Why: whoever opens the file after a kill finds the old content, by SQLite's own means.
"""

import fcntl
import os
import stat
import time
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager, suppress

from cleveragents.domain.errors import PlanError, RestoreFailedError, SnapshotFailedError
from cleveragents.domain.in_place import DRAFT
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.copy.clone_bytes import copy_bytes
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.sandbox.in_place.databases.users import (
    in_use,
    refuse_in_use,
    refuse_writers,
)
from cleveragents.infrastructure.sandbox.sqlite.read import private_folder
from cleveragents.infrastructure.snapshots.pages.database_file import (
    LOCK_SECONDS,
    DatabaseFile,
    DatabaseMovedError,
    HeldDatabase,
    drop_journals,
    marks_of,
)
from cleveragents.infrastructure.snapshots.pages.layout import BLOCK, PAGE, blocks_in, read_block
from cleveragents.infrastructure.sqlite.answers import RefusedInsideError
from cleveragents.infrastructure.sqlite.messages import NO_DATABASE
from cleveragents.infrastructure.sqlite.rollback_journal import (
    covered,
    page_size_of,
    write_journal,
)
from cleveragents.infrastructure.sqlite.side_files import (
    INDEX,
    JOURNAL,
    LOG,
    PENDING,
    RESERVED,
    SHARED,
    is_alone,
    is_hot,
    lock_of,
    posing,
)
from cleveragents.infrastructure.sqlite.worker import (
    DatabasePlace,
    DatabaseWorkers,
    LostInsideError,
    place_of,
)

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOG_HEADER = 32
# CLOCK_REALTIME_COARSE of Linux: the times of files are taken from it.
_COARSE_CLOCK = 5


class UsersDatabase(DatabaseFile):
    """`scratch` is where private copies lie for a moment."""

    def __init__(self, resource: PlanResource, workers: DatabaseWorkers, scratch: str) -> None:
        super().__init__(resource, workers)
        self._readers = workers
        self._scratch = scratch
        self._own: int | None = None

    # --- looking --------------------------------------------------------------------------------

    @property
    def draft(self) -> str:
        return self.path + DRAFT

    @property
    def is_led_away(self) -> bool:
        """Whether a link has come into its path since it was named: what is there is another one's,
        perhaps one that no step could reach."""
        return os.path.realpath(self.folder) != self.folder

    def look(self) -> os.stat_result | None:
        if self.is_led_away:
            return None
        try:
            return os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def strangers(self) -> tuple[str, ...]:
        """The files around it are those of the user's tree."""
        return ()

    def marks(self, found: os.stat_result) -> str:
        return "|".join([marks_of(found), *map(_marks_at, self._journals())])

    def can_be_written(self, found: os.stat_result) -> bool:
        """What SQLite would not take for a database is replaced: no journal could bring it back."""
        if not (stat.S_ISREG(found.st_mode) and os.access(self.path, os.R_OK | os.W_OK)):
            return False
        with opened(self.path, _READ) as fd:
            return page_size_of(fd) is not None

    # --- reading --------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Generator[HeldDatabase]:
        """All that is committed. Raises SnapshotFailedError, and DatabaseMovedError if it was not
        held still after all."""
        with ExitStack() as stack:
            fd = self._own
            if fd is None:
                fd = self.open()
                stack.callback(os.close, fd)
                if not self._locked(fd, fcntl.F_RDLCK, SHARED):
                    raise self._in_use()
            try:
                with self._consistent(fd) as held:
                    yield held
            except LostInsideError as error:
                raise DatabaseMovedError from error

    @contextmanager
    def _consistent(self, fd: int) -> Generator[HeldDatabase]:
        """With a reader's lock nobody writes in the file, but for who folds a log."""
        marks = self._reliable_marks(fd)
        if self._is_all(fd):
            before = os.fstat(fd)
            yield HeldDatabase(fd, marks=marks)
            if not self._is_all(fd) or marks_of(os.lstat(self.path)) != marks_of(before):
                raise DatabaseMovedError
            return
        with private_folder(self._scratch) as folder:
            copy = os.path.join(folder, self.name)
            with self._reader(), opened(copy, _NEW, 0o600) as target:
                self._copy(fd, target, copy)
            with self._folded_copy(fd, copy) as held:
                yield held._replace(marks=marks) if held.fd != fd else held

    def _is_all(self, fd: int) -> bool:
        """Whether the file is all there is, now that a lock of ours is on it."""
        if posing(self.path):
            return True  # SQLite cannot have written what poses as its journals
        if is_hot(self.path):
            # Who writes has not begun to do so in the file: our lock keeps him from it.
            return self._own is None and lock_of(fd, RESERVED, RESERVED)
        return is_alone(self.path) or (self._own is not None and self.is_quiet())

    @contextmanager
    def _reader(self) -> Generator[None]:
        """While SQLite reads, a log keeps what it holds, and only older pages get into the file.
        Without a log in use there is nobody to write, as long as nothing moves."""
        is_log = self._own is None and os.path.lexists(self.path + INDEX)
        before = self._facts()
        try:
            with ExitStack() as stack:
                if is_log:
                    self._let_sqlite_read(stack)
                yield
        except LostInsideError as error:
            raise DatabaseMovedError from error  # whoever read died, and the lock with it
        if not is_log and self._facts() != before:
            raise DatabaseMovedError

    def _let_sqlite_read(self, stack: ExitStack) -> None:
        try:
            stack.enter_context(self._readers.read(place_of(self.resource), LOCK_SECONDS))
        except RefusedInsideError as error:
            if error.kind != NO_DATABASE:  # or else it is bytes, and has no log
                raise self._in_use(error) from error

    def _copy(self, fd: int, target: int, copy: str) -> None:
        found = os.fstat(fd)
        copy_bytes(fd, target, found.st_size)
        for suffix in (JOURNAL, LOG):
            with suppress(FileNotFoundError), opened(self.path + suffix, _READ) as source:
                before = os.pread(source, _LOG_HEADER, 0)
                with opened(copy + suffix, _NEW, 0o600) as beside:
                    copy_bytes(source, beside, os.fstat(source).st_size)
                # One that begins anew has another header before it has another page.
                if os.pread(source, _LOG_HEADER, 0) != before:
                    raise DatabaseMovedError
        if os.lstat(self.path).st_ino != found.st_ino:
            raise DatabaseMovedError

    @contextmanager
    def _folded_copy(self, fd: int, copy: str) -> Generator[HeldDatabase]:
        """What SQLite makes of the copy; the file itself where it makes nothing of it, for going
        back must stay possible. But then nothing that lies beside it may be thrown away."""
        with ExitStack() as stack:
            notes: tuple[str, ...] = ()
            try:
                place = DatabasePlace(copy, self.resource.confinement)
                notes = stack.enter_context(self._readers.held(place, LOCK_SECONDS))
            except (RefusedInsideError, LostInsideError) as error:
                if self._own is not None:
                    raise RestoreFailedError(
                        self.resource.name, f"what lies beside {self.path} cannot be read: {error}"
                    ) from error
                note = f"{self.name} was taken as it is, without its journals: {error}"
                yield HeldDatabase(fd, (note,))
                return
            folded = stack.enter_context(opened(copy, _READ))
            os.fchmod(folded, stat.S_IMODE(os.fstat(fd).st_mode))
            yield HeldDatabase(folded, notes)

    def _facts(self) -> list[str]:
        return [*map(_marks_at, (self.path, *self._journals(), self.path + INDEX))]

    def _reliable_marks(self, fd: int) -> str:
        """Those that any write from now on will change; empty where that cannot be promised."""
        found = [os.fstat(fd), *filter(None, map(_status, self._journals()))]
        now = time.clock_gettime_ns(_COARSE_CLOCK)
        if any(status.st_ctime_ns >= now for status in found):
            return ""
        return self.marks(found[0])

    def _journals(self) -> tuple[str, str]:
        return self.path + LOG, self.path + JOURNAL

    def _in_use(self, error: Exception | None = None) -> SnapshotFailedError:
        why = f": {error}" if error else " for too long"
        return SnapshotFailedError(
            f"no snapshot could be taken: {self.path} is locked by another process{why}",
            f"let it finish, or see who it is: fuser -v {self.path}; then say it again",
        )

    # --- writing --------------------------------------------------------------------------------

    @property
    def is_taken(self) -> bool:
        """Whether it is locked for us alone."""
        return self._own is not None

    @contextmanager
    def taken(self) -> Generator[int]:
        """Raises DatabaseInUseError."""
        if self._own is not None:
            yield self._own
            return
        refuse_in_use(self.path)
        fd = self._open(os.O_RDWR)
        try:
            if not self._locked(fd, fcntl.F_WRLCK, PENDING):
                raise in_use(self.path)
            refuse_writers(self.path)
            self._own = fd
            yield fd
        finally:
            self._own = None
            os.close(fd)

    def refuse_posing(self) -> None:
        """What stands where SQLite has its journals, and is none, is somebody's. Raises
        RestoreFailedError."""
        for suffix in posing(self.path):
            raise RestoreFailedError(
                self.resource.name, f"{self.path}{suffix} is none of SQLite's own files"
            )

    def settle(self) -> None:
        """What journals hold becomes part of the file, as SQLite does it: until they go, they lead
        to the same content, whatever of it is written already. To be called while it is taken."""
        self.refuse_posing()
        with self.taken() as fd:
            if not self.is_quiet():
                with self._consistent(fd) as folded:
                    _write_all(folded.fd, fd)
        if any(map(os.path.lexists, (*self._journals(), self.path + INDEX))):
            drop_journals(self.path)
            self.sync_folder()

    def make_folder(self) -> None:
        """One that holds nothing but the database is no part of the tree, and went with it."""
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise RestoreFailedError(
                self.resource.name, f"{self.folder}: {error.strerror}"
            ) from error

    def begin(self, fd: int, pages: Collection[int], size: int) -> None:
        old = os.fstat(fd).st_size
        page = page_size_of(fd)
        if page is None:
            raise RestoreFailedError(self.resource.name, f"{self.path} is no database any more")
        ranges = [(number * PAGE, (number + 1) * PAGE) for number in pages]
        ranges += [(size, old)] if size < old else []
        if ranges:
            write_journal(self.path, fd, page, covered(ranges, page, old))
            self.sync_folder()

    def commit(self) -> None:
        """From here on, the new content counts."""
        with suppress(FileNotFoundError):
            os.unlink(self.path + JOURNAL)
        self.sync_folder()

    def give_up(self) -> None:
        """Writing failed: the old pages are put back from the journal, by us or whoever is next."""
        with suppress(PlanError, OSError, DatabaseMovedError):
            self.settle()


def _write_all(source: int, target: int) -> None:
    size = os.fstat(source).st_size
    for block in range(blocks_in(size)):
        data = read_block(source, block, size)
        if read_block(target, block, size) != data:
            os.pwrite(target, data, block * BLOCK)
    os.ftruncate(target, size)
    os.fsync(target)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _marks_at(path: str) -> str:
    found = _status(path)
    return marks_of(found) if found else ""
