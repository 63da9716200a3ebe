"""What the use cases need to know of sandboxes that are gone, and how they are made again."""

from collections.abc import Collection
from typing import Protocol

from cleveragents.application.ports.runtime import Restored, SnapshotStore
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.resource import Damage, PlanResource, Rebuilding


class SandboxPlaces(Protocol):
    def is_there(self, resource: PlanResource) -> bool:
        """Whether there is a whole sandbox at its place, as far as a glance shows."""
        ...


class SnapshotDiffs(Protocol):
    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        """What differs between two snapshots. The sandbox is neither needed nor touched.

        Raises SnapshotDamagedError.
        """
        ...


class UnusableSandboxes(Protocol):
    def damage(self, resource: PlanResource) -> Damage | None:
        """What keeps every command from working in the sandbox, if anything does. Raises
        SandboxMissingError for one that belongs to another data folder."""
        ...

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:
        """An empty sandbox; one that keeps its files has an empty repository instead.

        Raises SandboxError if something is in the way that may be anybody's.
        """
        ...

    def make_durable(self, resources: Collection[PlanResource]) -> None:
        """As `Sandboxes` has it."""
        ...


class RebuildingStore(SnapshotStore, Protocol):
    def newest(self, resource: PlanResource) -> str:
        """The snapshot that was taken or restored last. Raises SnapshotDamagedError."""
        ...

    def refuse_damaged(self, resource: PlanResource, ref: str) -> None:
        """Raise SnapshotDamagedError unless all of it is there and unharmed."""
        ...

    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored:
        """Fill what `make_room` has left, and prove it by hash. Idempotent."""
        ...
