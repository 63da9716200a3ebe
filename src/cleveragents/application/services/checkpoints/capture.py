"""One look at all sandboxes of a plan: what they hold, and what changed since the last one."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import CheckpointGroup, Snapshot
from cleveragents.domain.footprint import NOTHING, Touched
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.resource import PlanResource

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork


class Capture(Struct, frozen=True, kw_only=True):
    """The snapshots are on disk already; nothing is on record yet."""

    resources: Sequence[PlanResource]
    snapshots: Mapping[ResourceId, Snapshot] = field(default_factory=dict[ResourceId, Snapshot])

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """With several resources, each path with the name of its own."""
        many = len(self.resources) > 1
        return tuple(
            change._replace(path=f"{resource.name}:{change.path}") if many else change
            for resource in self.resources
            for change in self.snapshots[resource.resource_id].changes
        )

    @property
    def touched(self) -> Touched:
        found = {r.name: self.snapshots[r.resource_id].footprint for r in self.resources}
        return {name: footprint for name, footprint in found.items() if footprint}

    @property
    def moved(self) -> Sequence[PlanResource]:
        """Those that are not what they were at the last step boundary."""
        found = self.snapshots
        return [r for r in self.resources if found[r.resource_id].ref != r.boundary]

    def again(self) -> "Capture":
        """The same look, had once more: what it cost, had changed and was odd has been told."""
        same = {
            key: replace(found, size_bytes=0, changes=(), footprint=NOTHING, notes=())
            for key, found in self.snapshots.items()
        }
        return replace(self, snapshots=same)

    def record_positions(
        self, uow: "UnitOfWork", groups: Iterable[CheckpointGroup], *, is_boundary: bool
    ) -> "Capture":
        """Store where the resources stand now, and the bytes that no group has counted."""
        counted = frozenset[ResourceId]().union(*(group.counted for group in groups))
        settled = [self._settled(r, counted, is_boundary=is_boundary) for r in self.resources]
        for old, new in zip(self.resources, settled, strict=True):
            if new is not old:
                uow.resources.save(new)
        return replace(self, resources=settled)

    def _settled(
        self, resource: PlanResource, counted: Container[ResourceId], *, is_boundary: bool
    ) -> PlanResource:
        key, snapshot = resource.resource_id, self.snapshots[resource.resource_id]
        owed = 0 if key in counted else resource.uncounted + snapshot.size_bytes
        resource = replace(resource, uncounted=owed)
        is_there = not is_boundary or resource.boundary == snapshot.ref
        return resource if is_there else resource.at_boundary(snapshot.ref)
