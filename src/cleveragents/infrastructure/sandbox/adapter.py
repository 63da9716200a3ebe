"""What the program needs to know of one type of resource: a record that each type's folder makes.

To bring a type: its facts (`domain/resource_kinds`), a folder with an `adapter.py` that has all of
this, a line in `sandbox/registry`; then `tests/conformance` shows whether it keeps the promises.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from cleveragents.application.ports.merging import Applying, Decide, PreparedMerge
from cleveragents.application.ports.runtime import (
    Expected,
    Restored,
    SandboxMaking,
    Snapshots,
)
from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.domain.resource_kinds import ResourceKind
from cleveragents.infrastructure.snapshots.damage import Damages

if TYPE_CHECKING:
    part = property
else:  # type checkers do not know that this is a property too
    part = cached_property


class SandboxMaker(SandboxMaking, Protocol):
    """What one type does until apply."""

    def files_there(self, resource: PlanResource) -> int:
        """How many files a new sandbox would have; 0 where that is not known without a walk."""
        ...

    def make_room(self, resource: PlanResource, how: Rebuilding) -> None:
        """The contract is that of the port `UnusableSandboxes`."""
        ...

    def has_repository(self, resource: PlanResource) -> bool:
        """Whether the sandbox's own one can be read, as far as a glance shows; True for types
        that have none."""
        ...


class SnapshotEngine(Snapshots, Protocol):
    """Snapshots of one type; `newest` and `rebuild` are those of the port `RebuildingStore`."""

    def newest(self, resource: PlanResource) -> str: ...
    def rebuild(self, resource: PlanResource, how: Rebuilding) -> Restored: ...
    def damages(self, resource: PlanResource, snapshots: Collection[Expected]) -> Damages:
        """In one transaction; raises SnapshotDamagedError if the file of all is not readable."""
        ...


class ResourceMerge(Protocol):
    """How one type brings a child's result to its parent; the contract is that of `Merges`."""

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge],
        decide: Decide,
    ) -> PreparedMerge: ...
    def carry_out(self, parent: PlanResource, child: PlanResource, prepared: Any) -> None:
        """`prepared` is what this merge has prepared, and of its own type."""
        ...


class SandboxBranches(Protocol):
    def branch(self, parent: PlanResource, child: PlanResource) -> Snapshot:
        """The child's sandbox, from its parent's as that is now, and its first snapshot. There is
        nothing at its place yet; if this raises, the caller removes what is there then."""
        ...


class ResourceLocation(Protocol):
    """Where the real thing is, and what of it the sandbox stands on."""

    def is_grounded(self, resource: PlanResource) -> bool:
        """Whether what its sandbox and snapshots stand on is there."""
        ...

    def hold(self, resource: PlanResource) -> None:
        """Keep that from being removed. Raises BaseLostError if it was already."""
        ...

    def refuse_lost(self, resource: PlanResource) -> None:
        """Raise BaseLostError if it was removed; nothing is written."""
        ...

    def is_at(self, resource: PlanResource, place: str) -> bool:
        """Whether what is there may be the project of this resource."""
        ...

    def is_surely_at(self, resource: PlanResource, place: str) -> bool:
        """Whether it is, moved, and no copy of it."""
        ...

    def near(self, resource: PlanResource, cwd: str) -> Iterable[str]:
        """Where one that was moved may be; nothing if what is there could be anybody's."""
        ...

    def moved(self, resource: PlanResource, place: str) -> PlanResource:
        """The same resource there; its sandbox stands on that from now on."""
        ...

    def written_places(self, resource: PlanResource) -> Iterable[str]:
        """The folders that an apply has written in."""
        ...


class ResourceAdapter(Protocol):
    """Each part is made when it is first asked for: a command pays for those it uses."""

    @property
    def kind(self) -> ResourceKind: ...
    @property
    def sandbox(self) -> SandboxMaker: ...
    @property
    def applier(self) -> Applying: ...
    @property
    def snapshots(self) -> SnapshotEngine: ...
    @property
    def merge(self) -> ResourceMerge: ...
    @property
    def branches(self) -> SandboxBranches: ...
    @property
    def location(self) -> ResourceLocation: ...

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        """Of two snapshots; the contract is that of the port `SnapshotDiffs`."""
        ...

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        """What the sandbox holds now against the snapshot; nothing is written."""
        ...

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:
        """The contract is that of the port `Sandboxes`."""
        ...


def told_by(diff: ResourceDiff) -> tuple[str, ...]:
    """All names of a diff: what differs, and what is left behind."""
    return tuple(sorted({*(file.path for file in diff.files), *diff.left_behind}))
