"""Bringing a plan's database into the user's own one, in one transaction of SQLite's.

What is brought is a copy of the snapshot, proven by its hash and found healthy inside, and only if
the user's has not changed since the plan began. Here SQLite moves its pages and looks at nothing
but their header (ADR 0053).
In which order: a journal that our own killed run has left is rolled back; SQLite's backup begins to
write, by which it has the lock; under it, before the commit, the old content is compared.
Why: only then nobody can write any more, and it is not too late. What is not guaranteed: the lock
for a database of one page, compared just before; equal bytes after a revert, as a counter goes up.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager

from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyRefusedError,
)
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.entry import shown
from cleveragents.infrastructure.sandbox.folder.diff import stored
from cleveragents.infrastructure.sandbox.own_state import read_back, to_plain
from cleveragents.infrastructure.sandbox.sqlite.compare import (
    copy_without_log,
    pages_of,
    same_content,
    shares_change,
)
from cleveragents.infrastructure.sandbox.sqlite.read import (
    BUSY_SECONDS,
    BusyError,
    consistent_file,
    copy_in_use,
    is_busy,
    open_database,
    private_folder,
    uses_wal,
)
from cleveragents.infrastructure.sandbox.sqlite.sandbox import DatabaseToken
from cleveragents.infrastructure.snapshots.pages.engine import PagesEngine
from cleveragents.infrastructure.sqlite.answers import RefusedInsideError
from cleveragents.infrastructure.sqlite.side_files import (
    JOURNAL,
    RESERVED,
    SIDE_FILES,
    is_hot,
    lock_of,
    owner_named,
    posing,
)
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers, LostInsideError, place_of

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# Few enough to stay in the cache: until the check is made, nothing may reach the file.
_PAGES = 16
_PAUSE = 0.05
_READ = os.O_RDONLY | os.O_CLOEXEC


class SqliteApply:
    """`diff` tells what the plan changed in a database, `workers` are who asks SQLite about it."""

    def __init__(
        self,
        scratch_dir: str,
        snapshots: PagesEngine,
        diff: Callable[[PlanResource], ResourceDiff],
        workers: DatabaseWorkers,
    ) -> None:
        self._scratch = scratch_dir
        self._snapshots = snapshots
        self._diff = diff
        self._workers = workers

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:  # noqa: ARG002 - a database has no branches and no commits
        state = self._snapshots.capture(resource)
        base = resource.base_snapshot or ""
        changes = self._snapshots.changes_between(resource, base, state.ref)
        diff = self._diff(resource)
        if changes:
            self._refuse_unhealthy(resource, state.ref)
            _refuse_closed(resource)
            with _reported(resource), self._copy(resource, base) as copy:
                self._refuse_moved_on(resource, copy)
        token = DatabaseToken(
            changes=bool(changes), state=state.state_hash, result=state.ref, diff=stored(diff)
        )
        return PreparedApply(
            resource_id=resource.resource_id,
            token=to_plain(token),
            diff=diff,
            target="the whole database, which nobody else has changed since the plan was made"
            if changes
            else "nothing to bring",
            snapshots=tuple(ref for ref in (base, state.ref) if ref),
            alone=tuple(
                shown(os.fsencode(resource.location + suffix)) for suffix in ("", *SIDE_FILES)
            ),
        )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        token = read_back(resource, prepared.token, DatabaseToken)
        if not token.changes:
            return f"sqlite:{token.state}"
        if self._snapshots.capture(resource).state_hash != token.state:
            raise ApplyRefusedError(
                f"the sandbox of `{resource.name}` changed after the apply was prepared",
                f"agents plan apply {resource.plan_id}",
            )
        self._roll_back_ours(resource, token)
        _refuse_closed(resource)
        with (
            _reported(resource),
            self._copied(resource, token.result) as result,
        ):
            if not self._holds(resource, result):
                with self._copy(resource, resource.base_snapshot or "") as base:
                    self._write(resource, result, base)
        return f"sqlite:{token.state}"

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        """By SQLite as well, and so all pages but the change counter, which may only go up:
        whoever has the database open tells by it that pages have changed."""
        token = read_back(resource, prepared.token, DatabaseToken)
        if not token.changes or not os.path.isfile(resource.location):
            return ()
        self._roll_back_ours(resource, token)
        _refuse_planted(resource)
        with (
            _reported(resource),
            self._copied(resource, resource.base_snapshot or "") as before,
            self._copy(resource, token.result) as result,
        ):
            if self._holds(resource, before):
                return ()
            if not self._has_ours(resource, before, result):
                return ()  # it was changed before we could write anything
            try:
                self._return(resource, before, result)
            except ApplyConflictError:
                return (resource.location,)
        return ()

    def _roll_back_ours(self, resource: PlanResource, token: DatabaseToken) -> None:
        """Finish with a journal that a crash has left in the middle of our writing: only who may
        write can, and whoever reads before that is refused.

        It is ours if it leads back to what we have begun from; that is tried on a copy.
        """
        path = resource.location
        if not is_hot(path) or posing(path) or _is_being_written(path):
            return
        with _reported(resource), private_folder(self._scratch) as folder:
            copy = os.path.join(folder, "cut.db")
            for suffix in ("", JOURNAL):
                shutil.copyfile(path + suffix, copy + suffix)
            # One that names another journal is not ours, and SQLite would remove that one.
            if owner_named(copy):
                return
            _roll_back(copy)
            ends = (resource.base_snapshot or "", token.result)
            if any(self._has(resource, ref, copy) for ref in ends):
                _roll_back(path)

    def _has(self, resource: PlanResource, ref: str, path: str) -> bool:
        """Whether the snapshot is the database at `path`."""
        with self._copy(resource, ref) as wanted, opened(path, _READ) as present:
            return same_content(present, wanted)

    def _has_ours(self, resource: PlanResource, before: str, result: int) -> bool:
        with (
            opened(before, _READ) as old,
            consistent_file(resource.location, self._scratch) as present,
        ):
            return shares_change(present, old, result)

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """Snapshots are all that it is taken back by, and those have their own life."""

    def _return(self, resource: PlanResource, before: str, result: int) -> None:
        _refuse_planted(resource)
        if os.path.getsize(before):
            self._write(resource, before, result)
            return
        # An empty database has no page that could be written; it is a file without content.
        path = resource.location
        with opened(path, _READ) as raw, closing(open_database(path, "mode=rw")) as target:
            target.execute("BEGIN EXCLUSIVE")
            if not same_content(raw, result):
                raise _conflict(resource)
            os.truncate(path, 0)

    def _holds(self, resource: PlanResource, path: str) -> bool:
        """Whether the user's database is the one at `path`."""
        with (
            opened(path, _READ) as wanted,
            consistent_file(resource.location, self._scratch) as present,
        ):
            return same_content(present, wanted)

    def _refuse_moved_on(self, resource: PlanResource, expected: int) -> None:
        with consistent_file(resource.location, self._scratch) as present:
            if not same_content(present, expected):
                raise _conflict(resource)

    def _write(self, resource: PlanResource, content: str, expected: int) -> None:
        """What the file `content` holds, if the database still is what `expected` holds."""
        path = resource.location
        pages = pages_of(content)
        if pages <= 1:
            # A single page is written before the first look that is allowed in between.
            self._refuse_moved_on(resource, expected)
        wal = uses_wal(path)
        with (
            self._in_mode(content, wal=wal) as copy,
            closing(open_database(copy, "immutable=1")) as source,
            # The file is closed after the connection, whose locks would end with it.
            opened(path, _READ) as raw,
            closing(_target(path)) as target,
        ):
            check = _WalCheck(path, self._scratch) if wal else _FileCheck(raw)
            watch = _WriteWatch(resource, expected, check)
            step = _PAGES if pages > _PAGES else 1
            source.backup(target, pages=step, progress=watch, sleep=_PAUSE)

    @contextmanager
    def _in_mode(self, content: str, *, wal: bool) -> Generator[str]:
        """The same file, or a copy of it with another journal mode: it comes along with the pages,
        and how the journal is kept is the user's choice."""
        if wal or not uses_wal(content):  # into a log SQLite writes the mode itself
            yield content
            return
        with private_folder(self._scratch) as folder:
            copy = os.path.join(folder, "dressed.db")
            copy_without_log(content, copy)
            yield copy

    def _refuse_unhealthy(self, resource: PlanResource, ref: str) -> None:
        path = resource.sandbox_path
        problem = "it is gone"
        if os.path.isfile(path) and not os.path.islink(path):
            with self._copied(resource, ref) as copy:
                problem = self._checked(resource, copy)
        if problem != "ok":
            raise ApplyRefusedError(
                f"the plan left no healthy database in `{resource.name}`: {problem}",
                f"roll back: `agents plan checkpoint list {resource.plan_id}`",
            )

    def _checked(self, resource: PlanResource, copy: str) -> str:
        try:
            return self._workers.check(place_of(resource), copy)
        except (RefusedInsideError, LostInsideError) as error:
            return str(error)

    @contextmanager
    def _copy(self, resource: PlanResource, ref: str) -> Generator[int]:
        with self._copied(resource, ref) as path, opened(path, _READ) as copy:
            yield copy

    @contextmanager
    def _copied(self, resource: PlanResource, ref: str) -> Generator[str]:
        """The path of a file that holds the snapshot; it is only to be read."""
        with (
            private_folder(self._scratch) as folder,
            self._snapshots.copy_of(resource, ref, os.path.join(folder, "copy.db")) as path,
        ):
            yield path


class _WriteWatch:
    """Looks on while SQLite writes: once the database is locked for us, it must be as it was."""

    def __init__(self, resource: PlanResource, base: int, check: Callable[[int], bool]) -> None:
        self._resource = resource
        self._base = base
        self._check = check
        self._checked = False
        self._deadline = time.monotonic() + BUSY_SECONDS

    def __call__(self, status: int, _remaining: int, _total: int) -> None:
        if status in _BUSY:
            if time.monotonic() > self._deadline:
                raise BusyError(self._resource.location)
            return
        if status == sqlite3.SQLITE_OK and not self._checked:
            self._checked = True
            if not self._check(self._base):
                raise _conflict(self._resource)


class _FileCheck:
    """Without a write-ahead log the file holds the old content until the end."""

    def __init__(self, raw: int) -> None:
        self._raw = raw

    def __call__(self, base: int) -> bool:
        return same_content(self._raw, base)


class _WalCheck:
    """With a log, another reader sees the old content until the end."""

    def __init__(self, path: str, scratch_dir: str) -> None:
        self._path = path
        self._scratch = scratch_dir

    def __call__(self, base: int) -> bool:
        with private_folder(self._scratch) as folder:
            copy = os.path.join(folder, "copy.db")
            copy_in_use(self._path, copy, time.monotonic() + BUSY_SECONDS)
            with opened(copy, _READ) as present:
                return same_content(present, base)


def _target(path: str) -> sqlite3.Connection:
    target = open_database(path, "mode=rw", timeout=_PAUSE)
    if not _syncs_by_itself():
        target.execute("PRAGMA synchronous=FULL")
    return target


def _syncs_by_itself() -> bool:
    """Nearly every SQLite is made so; to tell it would read a schema that may be a step's."""
    with closing(sqlite3.connect(":memory:")) as db:
        made = {option for (option,) in db.execute("PRAGMA compile_options")}
    return made >= {"DEFAULT_SYNCHRONOUS=2", "DEFAULT_WAL_SYNCHRONOUS=2"}


def _refuse_closed(resource: PlanResource) -> None:
    path = resource.location
    if not os.path.isfile(path):
        raise ApplyRefusedError(
            f"the database {path} is not there any more", "put the file back if it was moved"
        )
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(os.path.dirname(path), os.W_OK)):
        raise ApplyRefusedError(
            f"{path} cannot be written, or its folder cannot", f"ls -ld {path} and its folder"
        )
    _refuse_planted(resource)


def _refuse_planted(resource: PlanResource) -> None:
    """A journal that waits to be rolled back may have come with the plan's files, and SQLite would
    do what it says. Whoever is just writing has one too, and locks it."""
    path = resource.location
    deadline = time.monotonic() + BUSY_SECONDS
    while is_hot(path):
        if not _is_being_written(path) or time.monotonic() > deadline:
            raise ApplyRefusedError(
                f"beside {path} is a journal that is not finished with",
                f'look at {path}-journal; if it is yours, sqlite3 {path} "PRAGMA quick_check" '
                f"rolls it back, then `agents plan apply {resource.plan_id}`",
            )
        time.sleep(_PAUSE)


def _is_being_written(path: str) -> bool:
    with opened(path, _READ) as fd:
        return lock_of(fd, RESERVED, RESERVED)


def _roll_back(path: str) -> None:
    """By SQLite, which does so before the first look."""
    with closing(open_database(path, "mode=rw")) as db:
        db.execute("PRAGMA schema_version").fetchone()


@contextmanager
def _reported(resource: PlanResource) -> Generator[None]:
    try:
        yield
    except (BusyError, sqlite3.Error, OSError) as error:
        reason = "it is locked by another process" if is_busy(error) else str(error)
        raise ApplyRefusedError(
            f"{resource.location} was not changed: {reason}",
            f"close what uses the database, then `agents plan apply {resource.plan_id}`",
        ) from error


def _conflict(resource: PlanResource) -> ApplyConflictError:
    return ApplyConflictError(
        resource.plan_id,
        resource.name,
        [resource.location],
        "the database was changed since the plan began",
        "start again on the database as it is now with `agents plan use`; "
        f"the plan's own result stays in {resource.sandbox_path}",
    )
