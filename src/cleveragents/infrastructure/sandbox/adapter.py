"""What the program needs to know of one type of resource: a record that each type's folder makes.

To bring a type: its facts (`domain/resource_kinds`), a folder with an `adapter.py` that has all of
this, a line in `sandbox/registry`; then `tests/conformance` shows whether it keeps the promises.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from cleveragents.application.ports.merging import Decide, PreparedMerge
from cleveragents.application.ports.runtime import Expected, Restored
from cleveragents.domain.action import MergeStrategy, ResourceSpec
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.changes import FileChange, ResourceDiff
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, Rebuilding, ResourceInspection
from cleveragents.domain.resource_kinds import ResourceKind
from cleveragents.infrastructure.snapshots.damage import Damages

if TYPE_CHECKING:
    part = property
else:  # type checkers do not know that this is a property too
    part = cached_property


class SandboxMaker(Protocol):
    """What one type does until apply; the contract is that of the port `Sandboxes`."""

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId, *, include_uncommitted: bool
    ) -> ResourceInspection: ...
    def create(self, resource: PlanResource) -> None: ...
    def check(self, resource: PlanResource) -> None: ...
    def make_room(self, resource: PlanResource, how: Rebuilding) -> None: ...
    def secure(self, resource: PlanResource) -> bool: ...
    def remove(self, resource: PlanResource) -> None: ...
    def release(self, resource: PlanResource) -> None: ...
    def diff(self, resource: PlanResource) -> ResourceDiff: ...
    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff: ...
    def has_repository(self, resource: PlanResource) -> bool:
        """Whether the sandbox's own one can be read, as far as a glance shows; True for types
        that have none."""
        ...


class Applier(Protocol):
    """How one type brings a result back; the contract is that of the port `Sandboxes`."""

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply: ...
    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str: ...
    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]: ...
    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None: ...


class SnapshotEngine(Protocol):
    """Snapshots of one type; the contract is that of the port `SnapshotStore`."""

    def capture(self, resource: PlanResource) -> Snapshot: ...
    def known(self, resource: PlanResource, ref: str) -> Snapshot: ...
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
    def applier(self) -> Applier: ...
    @property
    def snapshots(self) -> SnapshotEngine: ...
    @property
    def merge(self) -> ResourceMerge: ...
    @property
    def branches(self) -> SandboxBranches: ...
    @property
    def location(self) -> ResourceLocation: ...

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        """What the sandbox holds now against the snapshot; nothing is written."""
        ...
