"""The files of the way back: every sandbox as a group has it, or some of its paths.

Sandboxes go back one after the other, each proven by its hash before the next one; a resource that
the group has no state of stays as it is. Nothing here is on record: the caller stores the new
boundaries. Whatever is here may be repeated, as a restore compares with what is on disk.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import Restored, SnapshotStore
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import CheckpointGroup, ResourceState, RevertedFile
from cleveragents.domain.errors import (
    PathNotFoundError,
    PlanError,
    RestoreFailedError,
    RollbackPendingError,
)
from cleveragents.domain.in_place import Sparing
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.secrets import told_excludes
from cleveragents.domain.selection import Selection


class ChangedResource(Struct, frozen=True, kw_only=True):
    """What a restore did to one sandbox, or would do; `boundary` is where a resume starts now.

    `notes` are for people. `left` is what was spared in place.
    """

    resource: PlanResource
    changes: tuple[FileChange, ...]
    boundary: str | None = None
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Spares(Struct, frozen=True, kw_only=True):
    """By which a way back in place knows what it may replace: the group that holds the present, and
    the last one before it."""

    held: CheckpointGroup
    last: CheckpointGroup | None = None
    keep: bool = False

    def of(self, resource: PlanResource) -> Sparing:
        held = self.held.state_of(resource.resource_id)
        last = self.last.state_of(resource.resource_id) if self.last else None
        if held is None:
            raise RestoreFailedError(resource.name, "no group holds what is there")
        return Sparing(held=held.snapshot, last=last.snapshot if last else None, keep=self.keep)


class RollbackFiles:
    def __init__(self, snapshots: SnapshotStore) -> None:
        self._snapshots = snapshots

    def restore(
        self, resources: HeldResources, target: CheckpointGroup, spares: Spares | None = None
    ) -> Sequence[ChangedResource]:
        """Every sandbox as it was at `target`. Idempotent, and proven by hash, but for what is
        spared in place."""
        done: list[ChangedResource] = []
        resources.something_runs()
        together = all(target.state_of(r.resource_id) for r in resources.sandboxes)
        for resource in resources.capturable:
            state = target.state_of(resource.resource_id)
            if state is None:
                continue
            restored = self._restored(resource, state.snapshot, spares, together=together)
            if not restored.left and restored.snapshot.state_hash != state.state_hash:
                raise RestoreFailedError(resource.name, "its hash is not that of the checkpoint")
            changed = ChangedResource(
                resource=resource,
                changes=restored.changes,
                boundary=_boundary(restored, state),
                notes=restored.notes,
                left=restored.left,
            )
            done.append(changed)
        return done

    def _restored(
        self, resource: PlanResource, snapshot: str, spares: Spares | None, *, together: bool
    ) -> Restored:
        if not resource.in_place:
            return self._snapshots.restore(resource, snapshot, together=together)
        return self._snapshots.restore_sparing(resource, snapshot, _of(spares, resource))

    def refuse_in_use(
        self,
        resource: PlanResource,
        state: ResourceState,
        last: ResourceState | None,
        *,
        keep: bool,
    ) -> None:
        before = last.snapshot if last else None
        self._snapshots.refuse_in_use(resource, state.snapshot, before, keep=keep)

    def let_go(self, resources: HeldResources) -> None:
        """Nobody looks at them again soon, and to end watching takes as long as the rest."""
        for resource in resources.capturable:
            self._snapshots.release(resource)

    def put_back(
        self,
        resources: HeldResources,
        plan: Plan,
        safety: CheckpointGroup,
        cause: PlanError,
        target: CheckpointGroup | None = None,
    ) -> None:
        """The state before, since going to `target` has failed. Raises RollbackPendingError."""
        try:
            # In place, only what we have written ourselves is taken back.
            self.restore(resources, safety, Spares(held=target) if target else None)
        except PlanError as error:
            # The intent stays stored, so the next command tries to finish what this one could not.
            raise RollbackPendingError(plan.plan_id, cause.message, error.message) from error

    def restore_only(
        self,
        resources: HeldResources,
        target: CheckpointGroup,
        only: Selection,
        spares: Spares | None = None,
        *,
        undoes_step: bool,
    ) -> Sequence[ChangedResource]:
        """What is selected as it was at `target`; a step half done is undone first, but not in
        place. Idempotent."""
        done: list[ChangedResource] = []
        resources.something_runs()
        for resource in resources.capturable:
            undone: tuple[FileChange, ...] = ()
            notes: tuple[str, ...] = ()
            if undoes_step and resource.boundary is not None and not resource.in_place:
                whole = self._snapshots.restore(resource, resource.boundary)
                undone, notes = whole.changes, whole.notes
            chosen = self._restore_paths(resource, target, only, spares)
            changes = chosen.changes if chosen else ()
            merged = _merged(resource, undone, changes, only)
            # What both have to say is said once.
            said = dict.fromkeys((*notes, *(chosen.notes if chosen else ())))
            left = chosen.left if chosen else ()
            done.append(replace(merged, notes=tuple(said), left=left))
        return done

    def compare(
        self, resources: HeldResources, target: CheckpointGroup
    ) -> Sequence[ChangedResource]:
        """What `restore` would change now; nothing is written."""
        return [
            ChangedResource(
                resource=resource, changes=self._snapshots.compare(resource, state.snapshot)
            )
            for resource in resources.capturable
            if (state := target.state_of(resource.resource_id)) is not None
        ]

    def compare_only(
        self,
        resources: HeldResources,
        target: CheckpointGroup,
        only: Selection,
        *,
        undoes_step: bool,
    ) -> Sequence[ChangedResource]:
        """What `restore_only` would change now; nothing is written."""
        found: list[ChangedResource] = []
        for resource in resources.capturable:
            undone: tuple[FileChange, ...] = ()
            if undoes_step and resource.boundary is not None and not resource.in_place:
                undone = self._snapshots.compare(resource, resource.boundary)
            state, paths = target.state_of(resource.resource_id), only.paths.get(resource.name)
            changes: tuple[FileChange, ...] = ()
            if state is not None and paths is not None:
                changes = self._snapshots.compare(resource, state.snapshot, paths)
            found.append(_merged(resource, undone, changes, only))
        return found

    def refuse_unknown(
        self, resources: HeldResources, target: CheckpointGroup, only: Selection
    ) -> None:
        """Raises PathNotFoundError for a path that is neither in the checkpoint nor there now."""
        for resource in resources.capturable:
            state, paths = target.state_of(resource.resource_id), only.paths.get(resource.name)
            if state is None or not paths:
                continue
            unknown = self._snapshots.unknown_paths(resource, state.snapshot, paths)
            for path, meant in unknown.items():
                raise PathNotFoundError(resource.name, path, target.group_id, meant)

    def _restore_paths(
        self,
        resource: PlanResource,
        target: CheckpointGroup,
        only: Selection,
        spares: Spares | None,
    ) -> Restored | None:
        state, paths = target.state_of(resource.resource_id), only.paths.get(resource.name)
        if state is None or paths is None:
            return None
        if resource.in_place:
            sparing = _of(spares, resource)
            return self._snapshots.restore_sparing(resource, state.snapshot, sparing, paths)
        if not paths:
            return self._snapshots.restore(resource, state.snapshot, together=False)
        return self._snapshots.restore_paths(resource, state.snapshot, paths)


def reverted(changed: Sequence[ChangedResource]) -> tuple[RevertedFile, ...]:
    """As people are told; with several resources, each file with the name of its own."""
    many = len(changed) > 1
    return tuple(
        RevertedFile(
            file=f"{item.resource.name}:{change.path}" if many else change.path,
            action="removed" if change.kind is ChangeKind.DELETED else "restored",
        )
        for item in changed
        for change in item.changes
    )


def _of(spares: Spares | None, resource: PlanResource) -> Sparing:
    if spares is None:
        raise RestoreFailedError(resource.name, "it is the user's own tree")
    return spares.of(resource)


def _boundary(restored: Restored, state: ResourceState) -> str:
    """A group taken in the middle of a step resumes from the boundary before that step. What was
    left in place counts as changed since: the next look notes it."""
    if restored.left:
        return state.snapshot
    return restored.snapshot.ref if state.boundary == state.snapshot else state.boundary


def left_of(changed: Sequence[ChangedResource]) -> tuple[str, ...]:
    many = len(changed) > 1
    return tuple(
        f"{item.resource.name}:{name}" if many else name for item in changed for name in item.left
    )


def notes_of(changed: Iterable[ChangedResource]) -> tuple[str, ...]:
    return tuple(note for item in changed for note in item.notes)


def _merged(
    resource: PlanResource,
    undone: Iterable[FileChange],
    changes: Iterable[FileChange],
    only: Selection,
) -> ChangedResource:
    """What was selected has its last word from the checkpoint, the rest from the boundary."""
    rest = [change for change in undone if not only.has(resource.name, change.path)]
    merged = sorted([*rest, *changes], key=lambda change: change.path)
    return ChangedResource(resource=resource, changes=tuple(merged))


def excluded_paths(changed: Sequence[ChangedResource]) -> tuple[str, ...]:
    return tuple(path for item in changed for path in told_excludes(item.resource.exclude))
