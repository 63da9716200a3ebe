"""Snapshots of the user's own tree: taken like those of any tree, restored only with care.

There is no way in here that would replace something without knowing what is to be spared.
"""

import os
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import Restored
from cleveragents.domain.errors import RestoreFailedError
from cleveragents.domain.in_place import Sparing, listed
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.domain.secrets import skips_secrets
from cleveragents.infrastructure.files.entry import shown
from cleveragents.infrastructure.sandbox.in_place.git_restoring import RepositoryRestore, Sides
from cleveragents.infrastructure.sandbox.in_place.git_there import UsersRepositories
from cleveragents.infrastructure.sandbox.in_place.marker import stage_root
from cleveragents.infrastructure.sandbox.secrets import secrets_among
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine, changes_to
from cleveragents.infrastructure.snapshots.tree.look import captured
from cleveragents.infrastructure.snapshots.tree.restore.partial import Chosen
from cleveragents.infrastructure.snapshots.tree.restore.restored_times import left_in_place
from cleveragents.infrastructure.snapshots.tree.restore.sparing import SparedFiles, restore_files
from cleveragents.infrastructure.snapshots.tree.restore.staging import staging
from cleveragents.infrastructure.snapshots.tree.restore.whole import differences_to
from cleveragents.infrastructure.snapshots.tree.session import Session, open_sandbox

if TYPE_CHECKING:
    from cleveragents.infrastructure.files.rooted_folder import RootedFolder
    from cleveragents.infrastructure.snapshots.changes.tracker import ChangeTracker
    from cleveragents.infrastructure.snapshots.store.connections import Connections
    from cleveragents.infrastructure.snapshots.tree.extra_state import ExtraState
    from cleveragents.infrastructure.snapshots.tree.history import SnapshotRow
    from cleveragents.infrastructure.snapshots.tree.restore.staging import Staging


class _Done(Struct, frozen=True, kw_only=True):
    files: SparedFiles
    left: tuple[str, ...]
    notes: tuple[str, ...]


class InPlaceEngine(TreeEngine):
    def __init__(
        self,
        folders: "tuple[str, str]",
        side_of: "Callable[[PlanResource], ExtraState]",
        tracker: "ChangeTracker",
        connections: "Connections",
        repositories: UsersRepositories,
    ) -> None:
        """`folders` are those of snapshots and of what is there for a moment only."""
        super().__init__(*folders, side_of, tracker, connections)
        self._repositories = repositories

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

    def refuse_in_use(
        self, resource: PlanResource, ref: str, last: str | None, *, keep: bool
    ) -> None:
        """Files of a tree are replaced, whoever has them open."""

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
        delta, _ = captured(session, self._tracker)
        has_side = session.resource.kind.has_repository and not paths
        with (
            open_sandbox(session.resource) as anchor,
            self._repositories.opened(session.resource) as there,
        ):
            secrets = _secrets_left(session, anchor)
            differences = chosen.of(differences_to(session, delta, target))
            if not has_side:
                files = restore_files(session, anchor, delta, differences, sparing, stage)
                notes = (*files.notes, *secrets)
                return _Done(files=files, left=_named(files), notes=notes)
            sides = _sides(session, target, sparing)
            repository = RepositoryRestore(session.resource, there.git, sides)
            repository.prepare()
            with repository.locked():
                files = restore_files(session, anchor, delta, differences, sparing, stage)
                repository.write()
        return _Done(
            files=files,
            left=(*_named(files), *repository.moves.left),
            notes=(*files.notes, *secrets, *repository.notes()),
        )


def _sides(session: Session, target: "SnapshotRow", sparing: Sparing) -> Sides:
    last = session.snapshot(sparing.last) if sparing.last else None
    return Sides(
        target=session.stored_side(target),
        held=session.stored_side(session.snapshot(sparing.held)),
        last=session.stored_side(last) if last else None,
    )


def _secrets_left(session: Session, anchor: "RootedFolder") -> list[str]:
    """Those that are there, by name: whoever rotates one wants to know that it did not go back."""
    if not skips_secrets(session.resource.exclude):
        return []
    left = secrets_among(left_in_place(anchor, session.exclude, None))
    return [f"secrets, left in place: {listed(left)}"] if left else []


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
