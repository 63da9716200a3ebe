"""Owns one look at all sandboxes of a plan: what they hold, and what changed since the last one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cleveragents.application.ports import UnitOfWork
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.footprint import Touched
from cleveragents.domain.ids import ResourceId
from cleveragents.domain.sandbox import PlanResource


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
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

    def move_boundaries(self, uow: UnitOfWork) -> None:
        for resource in self.moved:
            uow.resources.save(resource.at_boundary(self.snapshots[resource.resource_id].ref))
