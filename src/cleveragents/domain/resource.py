"""A plan's resources: the real thing, and the sandbox that stands for it."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource_kinds import ResourceKind, ResourceType, kind_of

OwnState = Mapping[str, Any]
"""What a type of resource keeps for itself: plain values, which nobody else reads."""


class CleanupPolicy(StrEnum):
    """When the sandboxes of a plan go: once it is applied, also once it is cancelled, or never."""

    ON_APPLY = "on_apply"
    ON_TERMINAL = "on_terminal"
    MANUAL = "manual"


class SandboxStatus(StrEnum):
    """`MISSING` is never on record: it is what a look at one that should be ready finds."""

    PENDING = "pending"
    READY = "ready"
    REMOVED = "removed"
    MISSING = "missing"


class SandboxAddress(Struct, frozen=True, kw_only=True):
    """Where a sandbox is, for whoever works in it: `value` is the path, or URL, that commands find
    in their environment, `folder` where they start, and in `writable` they may write. `home` is
    the folder of the user's that it stands for, if it is one."""

    value: str
    folder: str
    writable: tuple[str, ...]
    home: str = ""


class PlanResource(Struct, frozen=True, kw_only=True):
    """One resource of one plan.

    `base` is what the sandbox is made from, fixed when the plan is made (for git: a commit).
    Once there is a sandbox, `base_snapshot` is how it began, and `boundary` the snapshot of the
    last committed step boundary. `kept_with` is the plan at the top, of a child.

    `confinement`: how the steps that write in this sandbox are held inside; whatever of ours
    interprets what they left is held the same way. `cut_out`: paths inside of it that belong to
    other resources of the plan, each with whose it is.

    Of a child's, `branched_at` is the snapshot of the parent's resource that its sandbox was made
    from; if it began anew, `origin` is the one that it, or whoever it takes the place of, was made
    from the first time.

    `intent` is the token of an apply that has begun or is done, kept for its diff; until it is
    over, the snapshots of `intent_needs` are needed. `uncounted` are the bytes of snapshots since
    the last group that has a checkpoint of it. `rebuilding`: how the sandbox is being made again;
    until that is done, nothing in it counts. `in_place`: there is no copy, the sandbox is the
    user's own tree (ADR 0100). `details` are the type's own.
    """

    resource_id: ResourceId
    plan_id: PlanId
    name: str
    type: ResourceType
    location: str
    base: str
    sandbox_path: str
    status: SandboxStatus = SandboxStatus.PENDING
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    checkpointable: bool = True
    base_snapshot: str | None = None
    boundary: str | None = None
    kept_with: PlanId | None = None
    confinement: Confinement = Confinement()
    cut_out: Mapping[str, str] = field(default_factory=dict[str, str])
    branched_at: str | None = None
    origin: str | None = None
    intent: OwnState | None = None
    intent_needs: tuple[str, ...] = ()
    uncounted: int = 0
    rebuilding: "Rebuilding | None" = None
    in_place: bool = False
    details: OwnState = field(default_factory=dict[str, Any])

    @property
    def store_id(self) -> PlanId:
        """The plan with whose snapshots these are kept: for children the one at the top, so that
        contents which they share are stored once."""
        return self.kept_with or self.plan_id

    def child_of(self, root: PlanId) -> "PlanResource":
        """As a child's begins: without what the parent is about to apply or has not counted yet,
        and without what it was itself branched from."""
        return replace(
            self,
            kept_with=root,
            status=SandboxStatus.PENDING,
            base_snapshot=None,
            boundary=None,
            branched_at=None,
            origin=None,
            intent=None,
            intent_needs=(),
            uncounted=0,
        )

    @property
    def kind(self) -> ResourceKind:
        return kind_of(self.type)

    @property
    def address(self) -> SandboxAddress:
        """A checkout has its repository beside it (ADR 0024), and a file a folder of its own."""
        path = self.sandbox_path
        if self.in_place and self.kind.is_folder:
            return SandboxAddress(value=path, folder=path, writable=(path,))
        if not self.kind.is_folder:
            folder = path.rpartition("/")[0]
            return SandboxAddress(value=path, folder=folder, writable=(folder,))
        beside = (f"{path}.git",) if self.kind.has_repository else ()
        return SandboxAddress(value=path, folder=path, writable=(path, *beside), home=self.location)

    def ready(self, base: str) -> "PlanResource":
        return replace(self, status=SandboxStatus.READY, base_snapshot=base, boundary=base)

    def needed_snapshots(self) -> frozenset[str]:
        """What must be kept for this resource, whatever groups there are."""
        steady = (ref for ref in (self.base_snapshot, self.boundary) if ref is not None)
        return frozenset((*steady, *self.intent_needs))

    def intending(self, token: OwnState, snapshots: Collection[str]) -> "PlanResource":
        """About to be applied; until that is over, these snapshots are needed."""
        return replace(self, intent=token, intent_needs=tuple(sorted(snapshots)))

    def withdrawn(self) -> "PlanResource":
        return replace(self, intent=None, intent_needs=())

    def at_boundary(self, snapshot: str) -> "PlanResource":
        return replace(self, boundary=snapshot)

    def removed(self) -> "PlanResource":
        return replace(self, status=SandboxStatus.REMOVED)

    def missing(self) -> "PlanResource":
        """For people: what is on record does not change by that."""
        return replace(self, status=SandboxStatus.MISSING)


class Damage(StrEnum):
    """What keeps every command from working in a sandbox: it is gone, or its own repository is."""

    GONE = "gone"
    REPOSITORY = "repository"


class Rebuilding(Struct, frozen=True, kw_only=True):
    """From which snapshot. `keeps_files`: only what is beside the files, a repository, is made
    anew; otherwise nothing of what is there stays."""

    snapshot: str
    keeps_files: bool = False


class ResourceInspection(Struct, frozen=True, kw_only=True):
    """What `plan use` found out about a real resource before it made a plan on it.

    `submodules` are paths inside that are applied with it or not at all; `exclude` is what no
    checkpoint will have beside what the action leaves out.
    """

    location: str
    base: str
    exclude: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    submodules: tuple[str, ...] = ()
    details: OwnState = field(default_factory=dict[str, Any])
