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
from collections.abc import Generator
from contextlib import closing, contextmanager

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyRefusedError,
)
from cleveragents.domain.resource import OwnState, PlanResource
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
from cleveragents.infrastructure.sandbox.sqlite.diff import diff_of_databases
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
from cleveragents.infrastructure.sandbox.sqlite.sandbox import DatabaseToken, SqliteDatabases
from cleveragents.infrastructure.sandbox.sqlite.write_watch import (
    PAUSE,
    FileCheck,
    WalCheck,
    WriteWatch,
    moved_on,
    writing_target,
)
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
from cleveragents.infrastructure.sqlite.worker import (
    DatabasePlace,
    DatabaseWorkers,
    LostInsideError,
    place_of,
)

# Few enough to stay in the cache: until the check is made, nothing may reach the file.
_PAGES = 16
_READ = os.O_RDONLY | os.O_CLOEXEC


class SqliteApply(Struct, frozen=True):
    """`databases` tells what the plan changed, `workers` are who asks SQLite about it."""

    _scratch: str
    _snapshots: PagesEngine
    _databases: SqliteDatabases
    _workers: DatabaseWorkers

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:  # noqa: ARG002 - a database has no branches and no commits
        state = self._snapshots.capture(resource)
        base = resource.base_snapshot or ""
        changes = self._snapshots.changes_between(resource, base, state.ref)
        diff = self._databases.diff(resource)
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
        # There may be no sandbox any more when it is taken back, or brought again.
        if not token.base and self._snapshots.capture(resource).state_hash != token.state:
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
                put = self._put if token.base else self._write
                with self._copy(resource, _base(resource, token)) as base:
                    put(resource, result, base)
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
            self._copied(resource, _base(resource, token)) as before,
            self._copy(resource, token.result) as result,
        ):
            if self._holds(resource, before):
                return ()
            if not self._has_ours(resource, before, result):
                return ()  # it was changed before we could write anything
            try:
                _refuse_planted(resource)
                self._put(resource, before, result)
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
            ends = (_base(resource, token), token.result)
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

    def way_of(self, resource: PlanResource, prepared: PreparedApply) -> OwnState:
        token = read_back(resource, prepared.token, DatabaseToken)
        return to_plain(replace(token, base=_base(resource, token), diff=ResourceDiff()))

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """As to `finish`, there is nothing to do."""

    def kept_bytes(self, resource: PlanResource) -> int:  # noqa: ARG002 - the same for every one
        return 0

    def withdraw(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """As to `finish`, there is nothing to do."""

    def prepare_move(self, resource: PlanResource, way: OwnState, side: ApplySide) -> PreparedApply:  # noqa: ARG002 - both ways are alike
        last = read_back(resource, way, DatabaseToken)
        state = self._snapshots.known(resource, last.base).state_hash
        token = replace(last, base=last.result, result=last.base, state=state)
        diff = ResourceDiff()
        if token.changes:
            _refuse_closed(resource)
            self._refuse_changed_since(resource, token.base)
            diff = self._databases.diff_between(resource, token.base, token.result)
        return PreparedApply(
            resource_id=resource.resource_id,
            token=to_plain(token),
            diff=diff,
            target="the whole database, which nobody else has changed since"
            if token.changes
            else "nothing to bring",
        )

    def _refuse_changed_since(self, resource: PlanResource, ref: str) -> None:
        """Raises ApplyConflictError, which names the tables."""
        with _reported(resource), self._copied(resource, ref) as expected:
            if self._holds(resource, expected):
                return
            with private_folder(self._scratch) as folder:
                copy = os.path.join(folder, os.path.basename(resource.location))
                copy_in_use(resource.location, copy, time.monotonic() + BUSY_SECONDS)
                place = DatabasePlace(copy, resource.confinement)
                found = diff_of_databases(self._workers, expected, place)
        names = [file.path for file in found.files] or [resource.location]
        why = "the database was changed since then"
        raise ApplyConflictError(resource.plan_id, resource.name, names, why)

    def _put(self, resource: PlanResource, before: str, result: int) -> None:
        """What the file `before` holds, if the database is what `result` holds."""
        if os.path.getsize(before):
            self._write(resource, before, result)
            return
        # An empty database has no page that could be written; it is a file without content.
        path = resource.location
        with opened(path, _READ) as raw, closing(open_database(path, "mode=rw")) as target:
            target.execute("BEGIN EXCLUSIVE")
            if not same_content(raw, result):
                raise moved_on(resource)
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
                raise moved_on(resource)

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
            closing(writing_target(path)) as target,
        ):
            check = WalCheck(path, self._scratch) if wal else FileCheck(raw)
            watch = WriteWatch(resource, expected, check)
            step = _PAGES if pages > _PAGES else 1
            source.backup(target, pages=step, progress=watch, sleep=PAUSE)

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


def _base(resource: PlanResource, token: DatabaseToken) -> str:
    return token.base or resource.base_snapshot or ""


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
        time.sleep(PAUSE)


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
