"""Looking on while SQLite writes into the user's database: it has to be what was expected."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

from cleveragents.domain.errors import ApplyConflictError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.sandbox.sqlite.compare import same_content
from cleveragents.infrastructure.sandbox.sqlite.read import (
    BUSY_SECONDS,
    BusyError,
    copy_in_use,
    open_database,
    private_folder,
)

PAUSE = 0.05
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_READ = os.O_RDONLY | os.O_CLOEXEC


class WriteWatch:
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
                raise moved_on(self._resource)


class FileCheck:
    """Without a write-ahead log the file holds the old content until the end."""

    def __init__(self, raw: int) -> None:
        self._raw = raw

    def __call__(self, base: int) -> bool:
        return same_content(self._raw, base)


class WalCheck:
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


def writing_target(path: str) -> sqlite3.Connection:
    target = open_database(path, "mode=rw", timeout=PAUSE)
    if not _syncs_by_itself():
        target.execute("PRAGMA synchronous=FULL")
    return target


def _syncs_by_itself() -> bool:
    """Nearly every SQLite is made so; to tell it would read a schema that may be a step's."""
    with closing(sqlite3.connect(":memory:")) as db:
        made = {option for (option,) in db.execute("PRAGMA compile_options")}
    return made >= {"DEFAULT_SYNCHRONOUS=2", "DEFAULT_WAL_SYNCHRONOUS=2"}


def moved_on(resource: PlanResource) -> ApplyConflictError:
    return ApplyConflictError(
        resource.plan_id,
        resource.name,
        [resource.location],
        "the database was changed since the plan began",
        "start again on the database as it is now with `agents plan use`; "
        f"the plan's own result stays in {resource.sandbox_path}",
    )
