"""Snapshots of the user's own database: taken as readers read it, restored only with care.

The rule is that of trees (ADR 0101): it is replaced only if it is exactly as a safety group has it.
In which order: what is there, compared without any lock of ours that others would notice; then the
lock, with nobody who has it open for writing; under it the same comparison once more; then what
journals hold, the pages, and the removal of the journal by which they count.
"""

import os
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import Restored
from cleveragents.domain.changes import FileChange
from cleveragents.domain.errors import RestoreFailedError, SnapshotFailedError
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.in_place import Sparing
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.sandbox.in_place.databases.file import UsersDatabase
from cleveragents.infrastructure.sandbox.in_place.databases.users import (
    readers_of,
    refuse_in_use,
)
from cleveragents.infrastructure.snapshots.pages.capture import capture
from cleveragents.infrastructure.snapshots.pages.database_file import (
    DatabaseMovedError,
    kind_of,
)
from cleveragents.infrastructure.snapshots.pages.engine import (
    PagesEngine,
    changes_of,
    restored_by,
    snapshot_of,
)
from cleveragents.infrastructure.snapshots.pages.history import FileState
from cleveragents.infrastructure.snapshots.pages.rebuild import build_file
from cleveragents.infrastructure.snapshots.pages.restore import differs, differs_from, restore
from cleveragents.infrastructure.snapshots.store.connections import Connections
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers

_ATTEMPTS = 5
_PAUSE = 0.02
_KINDS = (Kind.FILE, Kind.LINK, Kind.GONE)


class SparedWay(Struct, frozen=True, kw_only=True):
    """From what the safety group holds to a target; with `keep`, what moved after `last` stays."""

    target: FileState
    held: FileState
    last: FileState | None = None
    keep: bool = False

    def spares(self, present: FileState) -> bool:
        """Whether it was changed by somebody else, and so is left as it is."""
        if self.keep and self.last is not None and not self.held.same_as(self.last):
            return True
        # A kill may have left the new mode with the old content.
        if present.mode == self.target.mode and present.kind is self.held.kind:
            present = replace(present, mode=self.held.mode)
        return not present.same_as(self.held)


class InPlacePages(PagesEngine):
    """There is no way in here that would write without knowing what is to be spared."""

    def __init__(
        self, snapshots_dir: str, connections: Connections, workers: DatabaseWorkers, scratch: str
    ) -> None:
        super().__init__(snapshots_dir, connections, workers)
        self._workers = workers
        self._scratch = scratch
        self._taken: dict[ResourceId, UsersDatabase] = {}

    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:  # noqa: ARG002 - the port's names
        raise RestoreFailedError(resource.name, "it is the user's own database")

    def restore_paths(
        self,
        resource: PlanResource,
        ref: str,  # noqa: ARG002 - the port's names
        paths: Collection[str],  # noqa: ARG002
    ) -> Restored:
        raise RestoreFailedError(resource.name, "it is the user's own database")

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:  # noqa: ARG002 - the port's names
        raise RestoreFailedError(resource.name, "it is the user's own, and is not made again")

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        del paths
        for attempt in range(_ATTEMPTS):
            time.sleep(_PAUSE * attempt)
            with suppress(DatabaseMovedError, FileNotFoundError):
                return self._compared(resource, ref)
        raise SnapshotFailedError(
            f"{resource.location} cannot be compared: it keeps changing while it is read",
            "wait until whoever writes to it is through, then say it again",
        )

    def _compared(self, resource: PlanResource, ref: str) -> tuple[FileChange, ...]:
        with self._reading(resource) as session:
            target = session.snapshot(ref)
            kind = kind_of(session.file.look()) or Kind.GONE
            if kind is target.kind is Kind.FILE:
                with session.file.held() as held:
                    changed = differs_from(session, held.fd, target)
            else:
                kind, changed = differs(session, target)
            return changes_of(resource, FileState(kind=kind, seq=-1), target) if changed else ()

    def refuse_in_use(
        self, resource: PlanResource, ref: str, last: str | None, *, keep: bool
    ) -> None:
        """The contract is that of the port `SparingRestores`."""
        present = self._present(resource)
        with self._reading(resource) as session:
            way = SparedWay(
                target=session.snapshot(ref),
                held=session.state(),
                last=session.snapshot(last) if last else None,
                keep=keep,
            )
        if present.same_as(way.target) or way.spares(present) or not _is_usual(resource):
            return
        refuse_in_use(resource.location)

    def restore_sparing(
        self, resource: PlanResource, ref: str, sparing: Sparing, paths: Collection[str] = ()
    ) -> Restored:
        """The contract is that of the port `SparingRestores`."""
        del paths  # a database is one file
        way = self._way(resource, ref, sparing)
        present = self._present(resource)
        if present.same_as(way.target) and _is_usual(resource):
            return Restored(snapshot=snapshot_of(present, 0, ()), changes=())
        if way.spares(present) or not _is_usual(resource):
            return _left(resource, present)
        with self._alone(resource) as file:
            present = self._present(resource)
            if way.spares(present) or not _is_usual(resource):
                return _left(resource, present)
            return self._written(resource, file, way.target)

    def holds_file(self, resource: PlanResource, ref: str) -> bool:
        with self._reading(resource) as session:
            return session.snapshot(ref).kind is Kind.FILE

    def copy_to(self, resource: PlanResource, ref: str, path: str) -> None:
        """The snapshot as a new file that may be written to; nothing where it holds none."""
        with self._reading(resource) as session:
            state = session.snapshot(ref)
            if state.kind is Kind.FILE:
                build_file(session, replace(state, mode=0o600), path)

    def _written(self, resource: PlanResource, file: UsersDatabase, target: FileState) -> Restored:
        if file.is_led_away:
            raise RestoreFailedError(
                resource.name, f"a link leads away from {resource.location}: go back with all files"
            )
        file.refuse_posing()
        if file.is_taken:
            file.settle()
        elif target.kind is not Kind.GONE:
            file.make_folder()
        try:
            with self._working(resource) as session:
                outcome = restore(session, target)
        except BaseException:
            if file.is_taken:
                file.give_up()
            raise
        done = restored_by(resource, outcome, target)
        return replace(done, notes=(*done.notes, *_stale(resource)))

    @contextmanager
    def _alone(self, resource: PlanResource) -> Generator[UsersDatabase]:
        """Nobody else uses it. What can be locked stays locked until the end of the block."""
        file = UsersDatabase(resource, self._workers, self._scratch)
        found = file.look()
        if found is None or not file.can_be_written(found):
            refuse_in_use(resource.location)
            yield file
            return
        with file.taken():
            self._taken[resource.resource_id] = file
            try:
                yield file
            finally:
                del self._taken[resource.resource_id]

    def _way(self, resource: PlanResource, ref: str, sparing: Sparing) -> SparedWay:
        with self._reading(resource) as session:
            return SparedWay(
                target=session.snapshot(ref),
                held=session.snapshot(sparing.held),
                last=session.snapshot(sparing.last) if sparing.last else None,
                keep=sparing.keep,
            )

    def _present(self, resource: PlanResource) -> FileState:
        """As it is now, which is its newest snapshot from here on."""
        with self._working(resource) as session:
            return capture(session).state

    def _file(self, resource: PlanResource) -> UsersDatabase:
        taken = self._taken.get(resource.resource_id)
        return taken or UsersDatabase(resource, self._workers, self._scratch)


def _is_usual(resource: PlanResource) -> bool:
    """A folder or a pipe in its place is somebody's, and no snapshot has it."""
    try:
        return kind_of(os.lstat(resource.location)) in _KINDS
    except (FileNotFoundError, NotADirectoryError):
        return True


def _left(resource: PlanResource, present: FileState) -> Restored:
    name = os.path.basename(resource.location)
    return Restored(snapshot=snapshot_of(present, 0, ()), changes=(), left=(name,))


def _stale(resource: PlanResource) -> tuple[str, ...]:
    return tuple(
        f"{os.path.basename(resource.location)} is open for reading in {process}, which has to open"
        " it again"
        for process in readers_of(resource.location)
    )
