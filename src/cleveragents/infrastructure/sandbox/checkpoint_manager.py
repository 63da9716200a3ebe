"""Which engine takes the snapshots of which type of resource."""

from collections.abc import Collection, Mapping
from typing import Protocol

from cleveragents.application.ports.runtime import Expected, Restored
from cleveragents.domain.action import ResourceType
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import SnapshotDamagedError, SnapshotFailedError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.infrastructure.sandbox.git.repository.state import GitState
from cleveragents.infrastructure.sandbox.git.views import GitViews
from cleveragents.infrastructure.snapshots.changes.watcher import Watcher
from cleveragents.infrastructure.snapshots.pages.engine import PagesEngine
from cleveragents.infrastructure.snapshots.proof import Damages
from cleveragents.infrastructure.snapshots.store.connections import Connections
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
from cleveragents.infrastructure.snapshots.tree.extra_state import NoExtraState
from cleveragents.infrastructure.sqlite.worker import DatabaseWorkers


class SnapshotEngine(Protocol):
    """What the store needs to know about one type of resource; the contract is SnapshotStore's."""

    def capture(self, resource: PlanResource) -> Snapshot: ...
    def known(self, resource: PlanResource, ref: str) -> Snapshot: ...
    def inherit_snapshot(
        self, parent: PlanResource, child: PlanResource, copied: Mapping[bytes, object]
    ) -> Snapshot: ...
    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored: ...
    def restore_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Restored: ...
    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]: ...
    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]: ...
    def newest(self, resource: PlanResource) -> str: ...
    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored: ...
    def damages(self, resource: PlanResource, snapshots: Collection[Expected]) -> Damages:
        """In one transaction; raises SnapshotDamagedError if the file of all is not readable."""
        ...

    def verify_restorable(
        self, resource: PlanResource, ref: str, expected: str, paths: Collection[str] = ()
    ) -> None: ...
    def changes_between(
        self, resource: PlanResource, old: str, new: str
    ) -> tuple[FileChange, ...]: ...
    def keep_only(self, resource: PlanResource, refs: Collection[str]) -> int: ...
    def forget(self, plan_id: PlanId) -> None: ...
    def is_doubtful(self, resource: PlanResource) -> bool: ...
    def believe(self, resource: PlanResource) -> None: ...
    def release(self, resource: PlanResource) -> None: ...


class CheckpointManager:
    """The SnapshotStore. `scratch_dir` should be on the file system of the sandboxes; `workers` are
    who asks SQLite, `views` who asks git."""

    def __init__(
        self,
        snapshots_dir: str,
        scratch_dir: str,
        workers: DatabaseWorkers,
        views: GitViews,
        limit_bytes: int = 0,
    ) -> None:
        watcher = Watcher(scratch_dir)
        self._connections = Connections(limit_bytes)
        self.checkouts = TreeEngine(
            snapshots_dir,
            scratch_dir,
            lambda resource: GitState(resource, views),
            watcher,
            self._connections,
        )
        self.folders = TreeEngine(snapshots_dir, scratch_dir, _no_side, watcher, self._connections)
        self.databases = PagesEngine(snapshots_dir, self._connections, workers)
        self._engines: dict[ResourceType, SnapshotEngine] = {
            ResourceType.GIT_CHECKOUT: self.checkouts,
            ResourceType.FS_DIRECTORY: self.folders,
            ResourceType.SQLITE: self.databases,
        }

    def capture(self, resource: PlanResource) -> Snapshot:
        return self._engine(resource).capture(resource)

    def known(self, resource: PlanResource, ref: str) -> Snapshot:
        return self._engine(resource).known(resource, ref)

    def inherit_snapshot(
        self, parent: PlanResource, child: PlanResource, copied: Mapping[bytes, object]
    ) -> Snapshot:
        return self._engine(child).inherit_snapshot(parent, child, copied)

    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:
        return self._engine(resource).restore(resource, ref, together=together)

    def newest(self, resource: PlanResource) -> str:
        return self._engine(resource).newest(resource)

    def refuse_damaged(self, resource: PlanResource, ref: str) -> None:
        engine = self._engine(resource)
        expected = Expected(ref=ref, state_hash=engine.known(resource, ref).state_hash)
        for error in engine.damages(resource, [expected]).values():
            raise error

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:
        return self._engine(resource).rebuild(resource, how)

    def restore_paths(self, resource: PlanResource, ref: str, paths: Collection[str]) -> Restored:
        return self._engine(resource).restore_paths(resource, ref, paths)

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        return self._engine(resource).compare(resource, ref, paths)

    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]:
        return self._engine(resource).unknown_paths(resource, ref, paths)

    def damages(
        self, resource: PlanResource, snapshots: Collection[Expected]
    ) -> Mapping[Expected, str]:
        engine = self._engine(resource)
        try:
            found = engine.damages(resource, snapshots)
        except SnapshotDamagedError:
            # Where the file itself is damaged, some of it may still be readable.
            found = _one_by_one(engine, resource, snapshots)
        return {snapshot: error.message for snapshot, error in found.items()}

    def verify_restorable(
        self, resource: PlanResource, ref: str, state_hash: str, paths: Collection[str] = ()
    ) -> None:
        self._engine(resource).verify_restorable(resource, ref, state_hash, paths)

    def changes_between(self, resource: PlanResource, old: str, new: str) -> tuple[FileChange, ...]:
        return self._engine(resource).changes_between(resource, old, new)

    def keep_only(self, resource: PlanResource, refs: Collection[str]) -> int:
        return self._engine(resource).keep_only(resource, refs)

    def forget(self, plan_id: PlanId) -> None:
        for engine in self._engines.values():
            engine.forget(plan_id)

    def is_doubtful(self, resource: PlanResource) -> bool:
        return self._engine(resource).is_doubtful(resource)

    def believe(self, resource: PlanResource) -> None:
        self._engine(resource).believe(resource)

    def release(self, resource: PlanResource) -> None:
        self._engine(resource).release(resource)

    def close(self) -> None:
        """Let go of what is kept open; it is opened again if there is another use."""
        self._connections.close()

    def _engine(self, resource: PlanResource) -> SnapshotEngine:
        engine = self._engines.get(resource.type)
        if engine is None:
            raise SnapshotFailedError(
                f"`{resource.name}` is a {resource.type}, of which no snapshots can be taken",
                "use a git-checkout, or set `checkpointable: false` for this resource",
            )
        return engine


def _one_by_one(
    engine: SnapshotEngine, resource: PlanResource, snapshots: Collection[Expected]
) -> Damages:
    found: Damages = {}
    for snapshot in snapshots:
        try:
            found |= engine.damages(resource, [snapshot])
        except SnapshotDamagedError as error:
            found[snapshot] = error
    return found


def _no_side(resource: PlanResource) -> NoExtraState:  # noqa: ARG001 - the same for every folder
    return NoExtraState()
