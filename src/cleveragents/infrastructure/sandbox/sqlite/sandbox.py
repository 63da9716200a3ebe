"""The sandbox of a SQLite database: a consistent copy of it in a folder of its own.

The user's database and the folder around it are only read here.
"""

import hashlib
import os
import shlex
import shutil
import sqlite3
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import ResourceError, SandboxError, SandboxMissingError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, Rebuilding, ResourceInspection
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.sandbox.location import (
    NothingBeside,
    is_there,
    make_parent,
    own_folder,
    remove_sandbox,
    throw_away,
)
from cleveragents.infrastructure.sandbox.own_state import read_back
from cleveragents.infrastructure.sandbox.sqlite.diff import diff_of_databases
from cleveragents.infrastructure.sandbox.sqlite.read import (
    MAGIC,
    BusyError,
    copy_database,
    is_busy,
    private_folder,
    probe,
)
from cleveragents.infrastructure.snapshots.pages.engine import PagesEngine
from cleveragents.infrastructure.sqlite.worker import DatabasePlace, DatabaseWorkers, place_of

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class DatabaseToken(Struct, frozen=True, kw_only=True):
    """Of an apply: the snapshot that is brought, and the hash of its state. Without `changes`
    nothing is written. `base` is the one that the database has to be before; without it, that is
    how the sandbox began."""

    changes: bool
    state: str
    result: str
    diff: ResourceDiff
    base: str = ""


class SqliteDatabases(NothingBeside):
    def __init__(
        self,
        sandboxes_dir: str,
        scratch_dir: str,
        snapshots: PagesEngine,
        workers: DatabaseWorkers,
    ) -> None:
        self._sandboxes = Path(sandboxes_dir)
        self._scratch = scratch_dir
        self._snapshots = snapshots
        self._workers = workers

    def inspect(
        self,
        spec: ResourceSpec,
        plan_id: PlanId | None,  # noqa: ARG002 - nothing is pinned
        *,
        include_uncommitted: bool,  # noqa: ARG002 - what is committed in a database is all of it
    ) -> ResourceInspection:
        path = _existing_file(spec)
        self._refuse_own(path)
        _refuse_other_content(path)
        try:
            probe(path)
        except sqlite3.Error as error:
            raise ResourceError(
                f"{path} cannot be opened as a database: {error}",
                f'look at it: sqlite3 {path} "PRAGMA quick_check"',
            ) from error
        return ResourceInspection(location=path, base=_identity(path))

    def _refuse_own(self, path: str) -> None:
        data = self._sandboxes.parent.resolve()
        if Path(path).is_relative_to(data):
            raise ResourceError(
                f"{path} is inside the data directory {data}, where the sandboxes are",
                "use another database, or another data directory with --data-dir",
            )

    def create(self, resource: PlanResource) -> None:
        folder = Path(resource.sandbox_path).parent
        remove_sandbox(self._sandboxes, folder)
        try:
            copy_consistent(resource.location, resource)
        except BaseException:
            remove_sandbox(self._sandboxes, folder)
            raise

    def files_there(self, resource: PlanResource) -> int:  # noqa: ARG002 - only a walk would tell
        return 0

    def check(self, resource: PlanResource) -> None:
        """Raises SandboxMissingError."""
        if not is_there(self._sandboxes, resource):
            folder = own_folder(resource)
            raise SandboxMissingError(resource.name, folder, resource.store_id)

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:  # noqa: ARG002 - the file is all it has
        folder = Path(own_folder(resource))
        remove_sandbox(self._sandboxes, folder)
        make_parent(folder)
        folder.mkdir(mode=0o700)

    def remove_copy(self, resource: PlanResource) -> None:
        self.remove(resource)  # what is needed more is in the snapshots

    def remove(self, resource: PlanResource) -> None:
        folder = Path(resource.sandbox_path).parent
        throw_away(self._sandboxes, folder)
        with suppress(OSError):  # another sandbox of the plan may still be there
            folder.parent.rmdir()

    def left_behind(self, resource: PlanResource) -> tuple[str, ...]:
        return self.diff(resource).left_behind

    def diff(self, resource: PlanResource) -> ResourceDiff:
        if resource.base_snapshot is None:
            return ResourceDiff()
        strangers = self._snapshots.strangers(resource)
        with (
            private_folder(self._scratch) as folder,
            self._snapshots.copy_of(
                resource, resource.base_snapshot, os.path.join(folder, "base.db")
            ) as base,
        ):
            return diff_of_databases(self._workers, base, place_of(resource), strangers)

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        with private_folder(self._scratch) as folder:
            draft = os.path.join(folder, "before.db")
            with self._snapshots.copy_of(resource, ref, draft) as before:
                return diff_of_databases(self._workers, before, place_of(resource))

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        """Both are made anew beside each other: what is compared may be written by whoever reads
        it, and a base copy may not."""
        with private_folder(self._scratch) as folder:
            draft = os.path.join(folder, "before.db")
            # By the name of the database, which people are told.
            after = Path(folder, "after", Path(resource.sandbox_path).name)
            after.parent.mkdir(mode=0o700)
            with (
                self._snapshots.copy_of(resource, old, draft) as one,
                self._snapshots.copy_of(resource, new, str(after)) as two,
            ):
                if two != str(after):
                    shutil.copyfile(two, after)
                place = DatabasePlace(str(after), resource.confinement)
                return diff_of_databases(self._workers, one, place)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:  # noqa: ARG002 - what was applied is kept with the resource
        return read_back(resource, resource.intent, DatabaseToken).diff


class DatabaseBranches:
    def __init__(self, snapshots: PagesEngine) -> None:
        self._snapshots = snapshots

    def branch(self, parent: PlanResource, child: PlanResource) -> Snapshot:
        branch_consistent(parent, child, self._snapshots)
        # Read as a whole: a copy of a database need not be the same bytes.
        return self._snapshots.capture(child)


def copy_consistent(source: str, resource: PlanResource) -> None:
    """Fill the sandbox, of which there is nothing yet, with a consistent and durable copy of the
    user's database."""
    path = Path(resource.sandbox_path)
    with _reported(resource):
        make_parent(path.parent)
        path.parent.mkdir(mode=0o700)
        copy_database(source, str(path))
        _make_durable(path, os.stat(source).st_mode)


def branch_consistent(parent: PlanResource, resource: PlanResource, snapshots: PagesEngine) -> None:
    """The same from another sandbox, where a step may have written: that one is bytes to us."""
    path = Path(resource.sandbox_path)
    with _reported(resource):
        make_parent(path.parent)
        path.parent.mkdir(mode=0o700)
        with opened(path, _NEW, 0o600) as fd:
            mode = snapshots.copy_present(parent, fd)
        _make_durable(path, mode)


def _existing_file(spec: ResourceSpec) -> str:
    path = os.path.realpath(spec.location)
    try:
        found = os.stat(path)
    except OSError as error:
        raise ResourceError(
            f"there is no database at {spec.location}: {error.strerror}",
            f"correct the path, or make an empty one: sqlite3 {shlex.quote(spec.location)} VACUUM",
        ) from error
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise ResourceError(f"{path} is {what}", "name the database file itself as `path`")
    if not os.access(path, os.R_OK):
        raise ResourceError(f"{path} cannot be read", f"ls -l {path}")
    return path


def _refuse_other_content(path: str) -> None:
    with open(path, "rb") as file:
        start = file.read(len(MAGIC))
    if start and start != MAGIC:  # an empty file is an empty database
        raise ResourceError(
            f"{path} is not a SQLite database, or is encrypted",
            "name an unencrypted SQLite 3 database as `path`",
        )


def _identity(path: str) -> str:
    """A name for the state the files were in; the content itself is fixed by the first snapshot."""
    digest = hashlib.sha256()
    for name in (path, path + "-wal"):
        with suppress(FileNotFoundError), open(name, "rb") as file:
            found = os.fstat(file.fileno())
            facts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            digest.update(repr(facts).encode() + file.read(100))
    return f"sqlite:{digest.hexdigest()}"


@contextmanager
def _reported(resource: PlanResource) -> Generator[None]:
    try:
        yield
    except (BusyError, sqlite3.Error, OSError) as error:
        if is_busy(error):
            raise SandboxError(
                f"{resource.location} is locked by another process",
                f"let it finish or stop it, then `agents plan resume {resource.plan_id}`",
            ) from error
        raise SandboxError(
            f"the sandbox of `{resource.name}` cannot be made: {resource.location}: {error}",
            f"check the database, then `agents plan resume {resource.plan_id}`",
        ) from error


def _make_durable(path: Path, mode: int) -> None:
    """The user's permission bits, as far as we can still work; and on disk for good."""
    path.chmod(stat.S_IMODE(mode) | 0o600)
    for name, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        with opened(name, flags) as fd:
            os.fsync(fd)
