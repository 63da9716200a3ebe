"""Snapshots of the user's own tree: taken like those of any tree, restored only with care.

There is no way in here that would replace something without knowing what is to be spared.
"""

import os
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import Restored
from cleveragents.domain.errors import RestoreFailedError
from cleveragents.domain.in_place import Sparing
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.infrastructure.files.entry import shown
from cleveragents.infrastructure.sandbox.in_place.git_restoring import RepositoryRestore, Sides
from cleveragents.infrastructure.sandbox.in_place.marker import stage_root
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine, changes_to
from cleveragents.infrastructure.snapshots.tree.restore.partial import Chosen
from cleveragents.infrastructure.snapshots.tree.restore.sparing import SparedFiles, restore_files
from cleveragents.infrastructure.snapshots.tree.restore.staging import staging
from cleveragents.infrastructure.snapshots.tree.restore.whole import differences_to
from cleveragents.infrastructure.snapshots.tree.session import Session, open_sandbox

if TYPE_CHECKING:
    from cleveragents.infrastructure.snapshots.tree.history import SnapshotRow
    from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging


class _Done(Struct, frozen=True, kw_only=True):
    files: SparedFiles
    left: tuple[str, ...]
    notes: tuple[str, ...]


class InPlaceEngine(TreeEngine):
    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:  # noqa: ARG002 - the port's names
        raise RestoreFailedError(resource.name, "it is the user's own tree")

    def restore_paths(
        self,
        resource: PlanResource,
        ref: str,  # noqa: ARG002 - the port's names
        paths: Collection[str],  # noqa: ARG002
    ) -> Restored:
        raise RestoreFailedError(resource.name, "it is the user's own tree")

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:  # noqa: ARG002 - the port's names
        raise RestoreFailedError(resource.name, "it is the user's own tree, and is not made again")

    def restore_sparing(
        self, resource: PlanResource, ref: str, sparing: Sparing, paths: Collection[str] = ()
    ) -> Restored:
        """The contract is that of the port `SnapshotStore`."""
        with (
            self._in_doubt(resource),
            self._working(resource) as session,
            _stage(resource) as stage,
        ):
            target = session.snapshot(ref)
            done = self._restored_tree(session, target, sparing, paths, stage)
            recorded = session.record(done.files.delta, session.read_extra_state())
            row = recorded.row
            changes = changes_to(session.versions, done.files.done, row.seq)
        result = self._acknowledged(session, recorded, changes, done.notes)
        if not paths and not done.left and row.state_hash != target.state_hash:
            raise RestoreFailedError(resource.name, "it is not what the snapshot says")
        return replace(result, left=done.left)

    def _restored_tree(
        self,
        session: Session,
        target: "SnapshotRow",
        sparing: Sparing,
        paths: Collection[str],
        stage: "Staging",
    ) -> _Done:
        chosen = Chosen.named(paths)
        delta, _ = self._captured(session)
        repository = None if paths else self._repository(session, target, sparing)
        with open_sandbox(session.resource) as anchor:
            differences = chosen.of(differences_to(session, delta, target))
            if repository is None:
                files = restore_files(session, anchor, delta, differences, sparing, stage)
                return _Done(files=files, left=_named(files), notes=tuple(files.notes))
            repository.prepare()
            with repository.locked():
                files = restore_files(session, anchor, delta, differences, sparing, stage)
                repository.write()
        return _Done(
            files=files,
            left=(*_named(files), *repository.moves.left),
            notes=(*files.notes, *repository.notes()),
        )

    def _repository(
        self, session: Session, target: "SnapshotRow", sparing: Sparing
    ) -> RepositoryRestore | None:
        if not session.resource.kind.has_repository:
            return None
        last = session.snapshot(sparing.last) if sparing.last else None
        sides = Sides(
            target=session.stored_side(target),
            held=session.stored_side(session.snapshot(sparing.held)),
            last=session.stored_side(last) if last else None,
        )
        return RepositoryRestore(session.resource, sides)


def _named(files: SparedFiles) -> tuple[str, ...]:
    return tuple(shown(path) for path in files.left)


@contextmanager
def _stage(resource: PlanResource) -> "Generator[Staging]":
    """On the tree's own file system, so that a file takes its place by one rename."""
    root = stage_root(resource.location)
    try:
        with staging(root, resource) as stage:
            yield stage
    finally:
        with suppress(OSError):
            os.rmdir(root)
