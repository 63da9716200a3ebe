"""Owns bringing a plan's database back: into the user's own one, in one transaction of SQLite's,
and only if that has not changed since the plan began."""

import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress

from cleveragents.domain.applying import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyRefusedError,
)
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.fs_diff import stored
from cleveragents.infrastructure.sandbox.sqlite_bytes import same_content, shares_change
from cleveragents.infrastructure.sandbox.sqlite_database import DatabaseSnapshots
from cleveragents.infrastructure.sandbox.sqlite_read import (
    BUSY_SECONDS,
    BusyError,
    consistent_file,
    copy_in_use,
    is_busy,
    open_database,
    private_folder,
    probe,
    uses_wal,
)

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# Few enough to stay in the cache: until the check is made, nothing may reach the file.
_PAGES = 16
_PAUSE = 0.05
_READ = os.O_RDONLY | os.O_CLOEXEC


class SqliteApply:
    """`diff` tells what the plan changed in a database."""

    def __init__(
        self,
        scratch_dir: str,
        snapshots: DatabaseSnapshots,
        diff: Callable[[PlanResource], ResourceDiff],
    ) -> None:
        self._scratch = scratch_dir
        self._snapshots = snapshots
        self._diff = diff

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:  # noqa: ARG002 - a database has no branches and no commits
        state = self._snapshots.capture(resource)
        base = resource.base_snapshot or ""
        changes = self._snapshots.changes_between(resource, base, state.ref)
        diff = self._diff(resource)
        mode = ""
        if changes:
            _refuse_unhealthy(resource)
            _refuse_closed(resource)
            with _reported(resource), self._copy(resource, base) as copy:
                mode = probe(resource.location)
                self._refuse_moved_on(resource, copy)
        return PreparedApply(
            resource_id=resource.resource_id,
            token={
                "kind": "replace" if changes else "nothing",
                "state": state.state_hash,
                "result": state.ref,
                "journal_mode": mode,
                "diff": stored(diff),
            },
            diff=diff,
            snapshots=tuple(ref for ref in (base, state.ref) if ref),
        )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        state = str(prepared.token["state"])
        if prepared.token["kind"] == "nothing":
            return f"sqlite:{state}"
        if self._snapshots.capture(resource).state_hash != state:
            raise ApplyRefusedError(
                f"the sandbox of `{resource.name}` changed after the apply was prepared",
                f"agents plan apply {resource.plan_id}",
            )
        _refuse_closed(resource)
        with _reported(resource):
            if not self._holds(resource, resource.sandbox_path):
                with (
                    self._copy(resource, resource.base_snapshot or "") as base,
                    closing(open_database(resource.sandbox_path, "mode=rw")) as source,
                ):
                    self._write(resource, source, base)
            _keep_journal_mode(resource.location, prepared.token["journal_mode"])
        return f"sqlite:{state}"

    def take_back(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        """By SQLite as well, and so all pages but the change counter, which may only go up:
        whoever has the database open tells by it that pages have changed."""
        if prepared.token["kind"] == "nothing" or not os.path.isfile(resource.location):
            return ()
        with (
            _reported(resource),
            self._copied(resource, resource.base_snapshot or "") as before,
            self._copy(resource, prepared.token["result"]) as result,
        ):
            if self._holds(resource, before):
                return ()
            if not self._has_ours(resource, before, result):
                return ()  # it was changed before we could write anything
            try:
                self._return(resource, before, result)
            except ApplyConflictError:
                return (resource.location,)
            _keep_journal_mode(resource.location, prepared.token["journal_mode"])
        return ()

    def _has_ours(self, resource: PlanResource, before: str, result: int) -> bool:
        with (
            _opened(before) as old,
            consistent_file(resource.location, self._scratch) as present,
        ):
            return shares_change(present, old, result)

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """Snapshots are all that it is taken back by, and those have their own life."""

    def _return(self, resource: PlanResource, before: str, result: int) -> None:
        if os.path.getsize(before):
            with closing(open_database(before, "immutable=1")) as source:
                self._write(resource, source, result)
            return
        # An empty database has no page that could be written; it is a file without content.
        path = resource.location
        with _opened(path) as raw, closing(open_database(path, "mode=rw")) as target:
            target.execute("BEGIN EXCLUSIVE")
            if not same_content(raw, result):
                raise _conflict(resource)
            os.truncate(path, 0)

    def _holds(self, resource: PlanResource, path: str) -> bool:
        """Whether the user's database is the one at `path`."""
        with (
            _opened(path) as wanted,
            consistent_file(resource.location, self._scratch) as present,
        ):
            return same_content(present, wanted)

    def _refuse_moved_on(self, resource: PlanResource, expected: int) -> None:
        with consistent_file(resource.location, self._scratch) as present:
            if not same_content(present, expected):
                raise _conflict(resource)

    def _write(self, resource: PlanResource, source: sqlite3.Connection, expected: int) -> None:
        """What `source` holds, if the database still is what `expected` holds."""
        path = resource.location
        source.execute("BEGIN")
        pages = int(source.execute("PRAGMA page_count").fetchone()[0])
        if pages <= 1:
            # A single page is written before the first look that is allowed in between.
            self._refuse_moved_on(resource, expected)
        # The file is closed after the connection, whose locks would end with it.
        with _opened(path) as raw, closing(_target(path)) as target:
            mode = target.execute("PRAGMA journal_mode").fetchone()[0]
            check = _WalCheck(path, self._scratch) if mode == "wal" else _FileCheck(raw)
            watch = _Watch(resource, expected, check)
            step = _PAGES if pages > _PAGES else 1
            source.backup(target, pages=step, progress=watch, sleep=_PAUSE)

    @contextmanager
    def _copy(self, resource: PlanResource, ref: str) -> Generator[int]:
        with self._copied(resource, ref) as path, _opened(path) as copy:
            yield copy

    @contextmanager
    def _copied(self, resource: PlanResource, ref: str) -> Generator[str]:
        """The path of a file that holds the snapshot; it is only to be read."""
        with (
            private_folder(self._scratch) as folder,
            self._snapshots.copy_of(resource, ref, os.path.join(folder, "copy.db")) as path,
        ):
            yield path


class _Watch:
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
            with _opened(copy) as present:
                return same_content(present, base)


def _keep_journal_mode(path: str, mode: str) -> None:
    """Another one may have come along with the pages; how the journal is kept is the user's
    choice."""
    if uses_wal(path) == (mode == "wal"):
        return
    with suppress(sqlite3.Error), closing(_target(path)) as target:
        target.execute(f"PRAGMA journal_mode={mode}")


def _target(path: str) -> sqlite3.Connection:
    target = open_database(path, "mode=rw", timeout=_PAUSE)
    target.execute("PRAGMA synchronous=FULL")
    return target


def _refuse_unhealthy(resource: PlanResource) -> None:
    path = resource.sandbox_path
    problem = "it is gone"
    if os.path.isfile(path) and not os.path.islink(path):
        try:
            with closing(open_database(path, "mode=rw")) as db:
                problem = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.Error as error:
            problem = str(error)
    if problem != "ok":
        raise ApplyRefusedError(
            f"the plan left no healthy database in `{resource.name}`: {problem}",
            f"roll back: `agents plan checkpoint list {resource.plan_id}`",
        )


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


@contextmanager
def _opened(path: str) -> Generator[int]:
    fd = os.open(path, _READ)
    try:
        yield fd
    finally:
        os.close(fd)
