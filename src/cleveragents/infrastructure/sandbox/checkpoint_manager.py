"""Durable snapshots of sandboxes: the port `SnapshotStore`, each type by the engine of its own."""

from collections.abc import Collection, Mapping

from cleveragents.application.ports.runtime import Expected, Restored
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.in_place import Sparing
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.infrastructure.sandbox.adapter import SnapshotEngine
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters
from cleveragents.infrastructure.snapshots.damage import Damages


class CheckpointManager:
    def __init__(self, adapters: ResourceAdapters) -> None:
        self._adapters = adapters

    def capture(self, resource: PlanResource) -> Snapshot:
        return self._engine(resource).capture(resource)

    def known(self, resource: PlanResource, ref: str) -> Snapshot:
        return self._engine(resource).known(resource, ref)

    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:
        self._adapters.bench.working(f"restoring `{resource.name}`")
        return self._engine(resource).restore(resource, ref, together=together)

    def restore_sparing(
        self, resource: PlanResource, ref: str, sparing: Sparing, paths: Collection[str] = ()
    ) -> Restored:
        self._adapters.bench.working(f"restoring `{resource.name}`")
        return self._adapters.in_place(resource).restore_sparing(resource, ref, sparing, paths)

    def refuse_in_use(
        self, resource: PlanResource, ref: str, last: str | None, *, keep: bool
    ) -> None:
        self._adapters.in_place(resource).refuse_in_use(resource, ref, last, keep=keep)

    def newest(self, resource: PlanResource) -> str:
        return self._engine(resource).newest(resource)

    def refuse_damaged(self, resource: PlanResource, ref: str) -> None:
        engine = self._engine(resource)
        expected = Expected(ref=ref, state_hash=engine.known(resource, ref).state_hash)
        for error in engine.damages(resource, [expected]).values():
            raise error

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:
        self._adapters.bench.working(f"making the sandbox of `{resource.name}` again")
        return self._engine(resource).rebuild(resource, how)

    def restore_paths(self, resource: PlanResource, ref: str, paths: Collection[str]) -> Restored:
        self._adapters.bench.working(f"restoring `{resource.name}`")
        return self._engine(resource).restore_paths(resource, ref, paths)

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        self._adapters.bench.working(f"comparing `{resource.name}`")
        return self._engine(resource).compare(resource, ref, paths)

    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]:
        return self._engine(resource).unknown_paths(resource, ref, paths)

    def damages(
        self, resource: PlanResource, snapshots: Collection[Expected]
    ) -> Mapping[Expected, str]:
        engine = self._engine(resource)
        self._adapters.bench.working(f"verifying the checkpoints of `{resource.name}`")
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

    def keep_only(
        self, resource: PlanResource, refs: Collection[str], *, if_worth: bool = False
    ) -> int:
        self._adapters.bench.working(f"freeing what no checkpoint of `{resource.name}` needs")
        return self._engine(resource).keep_only(resource, refs, if_worth=if_worth)

    def forget(self, plan_id: PlanId) -> None:
        self._adapters.bench.working("removing snapshots")
        for adapter in self._adapters.all():
            adapter.snapshots.forget(plan_id)

    def is_doubtful(self, resource: PlanResource) -> bool:
        return self._engine(resource).is_doubtful(resource)

    def believe(self, resource: PlanResource) -> None:
        self._engine(resource).believe(resource)

    def release(self, resource: PlanResource) -> None:
        self._engine(resource).release(resource)

    def close(self) -> None:
        """Let go of what is kept open; it is opened again if there is another use."""
        self._adapters.bench.close()

    def _engine(self, resource: PlanResource) -> SnapshotEngine:
        return self._adapters.of(resource).snapshots


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
