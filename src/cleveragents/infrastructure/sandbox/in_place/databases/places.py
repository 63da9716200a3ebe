"""The user's own database as a sandbox: nothing is made or removed, and where it may lie."""

import os
import shlex
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import InPlaceRefusedError, ResourceError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, Rebuilding, ResourceInspection
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.sandbox.in_place.databases.engine import InPlacePages
from cleveragents.infrastructure.sandbox.in_place.marker import occupant_of
from cleveragents.infrastructure.sandbox.sqlite.diff import diff_of_databases
from cleveragents.infrastructure.sandbox.sqlite.read import private_folder
from cleveragents.infrastructure.sqlite.rollback_journal import MAGIC
from cleveragents.infrastructure.sqlite.worker import DatabasePlace, DatabaseWorkers

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SPACE = 2
_GIB = 1024**3


class InPlaceDatabases:
    """The contract is that of `SandboxMaker`."""

    def __init__(
        self, data_dir: str, scratch: str, snapshots: InPlacePages, workers: DatabaseWorkers
    ) -> None:
        self._data_dir = data_dir
        self._scratch = scratch
        self._snapshots = snapshots
        self._workers = workers

    def inspect(
        self,
        spec: ResourceSpec,
        plan_id: PlanId | None,  # noqa: ARG002 - nothing is pinned
        *,
        include_uncommitted: bool,  # noqa: ARG002 - what is committed in a database is all of it
    ) -> ResourceInspection:
        path = os.path.realpath(spec.location)
        found = _status(spec.location, path)
        _refuse_place(path, self._data_dir)
        _refuse_rights(path, found)
        _refuse_content(path)
        _refuse_size(path, found.st_size, self._data_dir)
        return ResourceInspection(location=path, base="")

    def create(self, resource: PlanResource) -> None:
        """It is there."""

    def files_there(self, resource: PlanResource) -> int:  # noqa: ARG002 - nothing is copied
        return 0

    def check(self, resource: PlanResource) -> None:
        """One that is gone is no trouble: a way back brings it again."""

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:  # noqa: ARG002 - never
        raise InPlaceRefusedError(
            f"{resource.location} is your own database, and is not made again",
            "go back to a checkpoint that has it with `agents plan rollback`",
        )

    def remove(self, resource: PlanResource) -> None:
        """The timeline is over; the database stays as it is."""

    def remove_copy(self, resource: PlanResource) -> None:
        """There is none."""

    def secure(self, resource: PlanResource) -> bool:  # noqa: ARG002 - the same for every one
        return True

    def has_repository(self, resource: PlanResource) -> bool:  # noqa: ARG002 - it needs none
        return True

    def release(self, resource: PlanResource) -> None:
        """Nothing was pinned."""

    def left_behind(self, resource: PlanResource) -> tuple[str, ...]:  # noqa: ARG002 - nothing is
        return ()

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:  # noqa: ARG002 - nothing is merged
        return ResourceDiff()

    def diff(self, resource: PlanResource) -> ResourceDiff:
        """What has changed since the timeline began, whoever did it."""
        if resource.base_snapshot is None:
            return ResourceDiff()
        return self.diff_since(resource, resource.base_snapshot)

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        """Of copies: what is the user's is not opened for this."""
        with private_folder(self._scratch) as folder:
            after = self._beside(resource, folder)
            if _is_regular(resource.location):
                with opened(after.path, _NEW, 0o600) as target:
                    self._snapshots.copy_present(resource, target)
            return self._diff(resource, ref, folder, after)

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        with private_folder(self._scratch) as folder:
            after = self._beside(resource, folder)
            self._snapshots.copy_to(resource, new, after.path)
            return self._diff(resource, old, folder, after)

    def _diff(
        self, resource: PlanResource, old: str, folder: str, after: DatabasePlace
    ) -> ResourceDiff:
        draft = os.path.join(folder, "before.db")
        with self._before(resource, old, draft) as before:
            return diff_of_databases(self._workers, before, after)

    @contextmanager
    def _before(self, resource: PlanResource, ref: str, draft: str) -> Generator[str]:
        """A database that was gone then was an empty one, as far as a difference goes."""
        if not self._snapshots.holds_file(resource, ref):
            with opened(draft, _NEW, 0o600):
                yield draft
            return
        with self._snapshots.copy_of(resource, ref, draft) as before:
            yield before

    def _beside(self, resource: PlanResource, folder: str) -> DatabasePlace:
        """By the name of the database, which people are told."""
        inner = os.path.join(folder, "after")
        os.mkdir(inner, 0o700)
        path = os.path.join(inner, os.path.basename(resource.location))
        return DatabasePlace(path, resource.confinement)


class DatabaseLocation:
    """In the tree of the timeline it goes where that goes; elsewhere it is where it is."""

    def is_grounded(self, resource: PlanResource) -> bool:
        folder = os.path.dirname(resource.location)
        return os.path.isdir(folder) or any(
            _is_tree_of(resource, above) for above in _above(folder)
        )

    def hold(self, resource: PlanResource) -> None:
        """Nothing of it is needed."""

    def refuse_lost(self, resource: PlanResource) -> None:
        """Nor can be lost."""

    def is_at(self, resource: PlanResource, place: str) -> bool:
        return any(_is_tree_of(resource, above) for above in _above(os.path.dirname(place)))

    def is_surely_at(self, resource: PlanResource, place: str) -> bool:
        return not self.is_grounded(resource) and self.is_at(resource, place)

    def near(self, resource: PlanResource, cwd: str) -> Iterator[str]:
        """The same path in each tree around with the note of this timeline."""
        for old in _above(os.path.dirname(resource.location)):
            if os.path.lexists(old):
                break
            rest = os.path.relpath(resource.location, old)
            for tree in (cwd, *_above(cwd), *_siblings(old)):
                if _is_tree_of(resource, tree) and os.path.isdir(
                    os.path.dirname(os.path.join(tree, rest))
                ):
                    yield os.path.join(tree, rest)

    def moved(self, resource: PlanResource, place: str) -> PlanResource:
        return replace(resource, location=place, sandbox_path=place)

    def written_places(self, resource: PlanResource) -> Iterator[str]:
        folder = os.path.dirname(resource.location)
        if os.path.isdir(folder):
            yield folder


def _above(folder: str) -> Iterator[str]:
    """The folder and all above it, the innermost first."""
    below = ""
    while folder != below:
        yield folder
        folder, below = os.path.dirname(folder), folder


def _siblings(folder: str) -> list[str]:
    parent = os.path.dirname(folder)
    try:
        return [os.path.join(parent, name) for name in sorted(os.listdir(parent))]
    except OSError:
        return []


def _is_tree_of(resource: PlanResource, folder: str) -> bool:
    found = occupant_of(folder) if os.path.isdir(folder) else None
    return found is not None and found.plan_id == resource.plan_id


def _is_regular(path: str) -> bool:
    """A file itself, and no link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


# --- what may be worked on ------------------------------------------------------------------------


def _status(said: str, path: str) -> os.stat_result:
    try:
        found = os.stat(path)
    except OSError as error:
        raise ResourceError(
            f"there is no database at {said}: {error.strerror}",
            f"correct the path, or make an empty one: touch {shlex.quote(said)}",
        ) from error
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise ResourceError(f"{path} is {what}", "name the database file itself: --db PATH")
    return found


def _refuse_place(path: str, data_dir: str) -> None:
    """The program may write in the folder around it, where SQLite has its journals."""
    folder = os.path.dirname(path)
    home, data = os.path.realpath(os.path.expanduser("~")), os.path.realpath(data_dir)
    what = None
    if folder == "/" or f"{home}/".startswith(f"{folder}/"):
        what = "is or holds a home folder"
    elif f"{data}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{data}/"):
        what = "is or holds the folder where agents keeps its own data"
    if what is not None:
        raise InPlaceRefusedError(
            f"{folder} {what}: a program that works on {path} in place would have to write there",
            "put the database into a folder of its own, or leave out --in-place",
        )


def _refuse_rights(path: str, found: os.stat_result) -> None:
    folder = os.path.dirname(path)
    what = None
    if os.geteuid() not in (0, found.st_uid):
        what = "belongs to another user"
    elif found.st_nlink != 1:
        what = "has several names (hard links), of which SQLite keeps a journal each"
    elif os.statvfs(folder).f_flag & os.ST_RDONLY or not os.access(path, os.R_OK | os.W_OK):
        what = "cannot be read and written"
    elif not os.access(folder, os.W_OK | os.X_OK):
        what = "is in a folder that cannot be written, where its journals belong"
    if what is not None:
        raise InPlaceRefusedError(
            f"{path} {what}, and is not worked on in place", f"ls -ld {shlex.quote(path)} {folder}"
        )


def _refuse_content(path: str) -> None:
    """Only a look at the first bytes: a program may have written it, and SQLite is asked inside."""
    with opened(path, _READ) as fd:
        start = os.pread(fd, len(MAGIC), 0)
    if start and start != MAGIC:  # an empty file is an empty database
        raise ResourceError(
            f"{path} is not a SQLite database, or is encrypted",
            "leave out --db: as a file of the tree it is in the checkpoints all the same",
        )


def _refuse_size(path: str, size: int, data_dir: str) -> None:
    there = data_dir
    while not os.path.isdir(there):
        there = os.path.dirname(there) or "/"
    space = os.statvfs(there)
    free = space.f_bavail * space.f_frsize
    if size * _SPACE > free:
        raise InPlaceRefusedError(
            f"{path} has {size / _GIB:.1f} GB, and {free / _GIB:.1f} GB are free for checkpoints",
            "make room, or leave out --db and say --exclude for it",
        )
