"""A plan's resources: the real thing, and the sandbox that stands for it."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from cleveragents.domain.confinement import (
    Confinement,
    confinement_from_map,
    confinement_to_map,
)
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource_kinds import ResourceKind, ResourceType, kind_of

_INTENT = "apply"
_NEEDED = "apply_needs"
BRANCHED_AT = "branched_at"
ORIGIN = "origin"
_CONFINEMENT = "confinement"
_UNCOUNTED = "uncounted_bytes"
_REBUILDING = "rebuilding"
CUT_OUT = "cut_out"


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
    in their environment, `folder` where they start, and in `writable` they may write."""

    value: str
    folder: str
    writable: tuple[str, ...]


class PlanResource(Struct, frozen=True, kw_only=True):
    """One resource of one plan.

    `base` is what the sandbox is made from, fixed when the plan is made (for git: a commit).
    Once there is a sandbox, `base_snapshot` is how it began, and `boundary` the snapshot of the
    last committed step boundary.
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
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def store_id(self) -> PlanId:
        """The plan with whose snapshots these are kept: for children the one at the top, so that
        contents which they share are stored once."""
        return PlanId(self.details.get("store") or self.plan_id)

    @property
    def confinement(self) -> Confinement:
        """How the steps that write in this sandbox are held inside; whatever of ours interprets
        what they left is held the same way."""
        stored = self.details.get(_CONFINEMENT)
        return confinement_from_map(stored) if stored else Confinement()

    def held(self, confinement: Confinement) -> "PlanResource":
        told = {_CONFINEMENT: confinement_to_map(confinement)}
        return replace(self, details={**self.details, **told})

    @property
    def kind(self) -> ResourceKind:
        return kind_of(self.type)

    @property
    def address(self) -> SandboxAddress:
        """A checkout has its repository beside it (ADR 0024), and a file a folder of its own."""
        path = self.sandbox_path
        if not self.kind.is_folder:
            folder = path.rpartition("/")[0]
            return SandboxAddress(value=path, folder=folder, writable=(folder,))
        beside = (f"{path}.git",) if self.kind.has_repository else ()
        return SandboxAddress(value=path, folder=path, writable=(path, *beside))

    def ready(self, base: str) -> "PlanResource":
        return replace(self, status=SandboxStatus.READY, base_snapshot=base, boundary=base)

    @property
    def branched_at(self) -> str | None:
        """Of a child's, the snapshot of the parent's resource that its sandbox was made from."""
        return self.details.get(BRANCHED_AT)

    @property
    def origin(self) -> str | None:
        """Of a child that began anew, the snapshot of the parent's resource that it, or whoever it
        takes the place of, was made from the first time."""
        return self.details.get(ORIGIN)

    def began_at(self, origin: str | None) -> "PlanResource":
        return self if origin is None else replace(self, details={**self.details, ORIGIN: origin})

    def needed_snapshots(self) -> frozenset[str]:
        """What must be kept for this resource, whatever groups there are."""
        steady = (ref for ref in (self.base_snapshot, self.boundary) if ref is not None)
        return frozenset((*steady, *self.details.get(_NEEDED, ())))

    @property
    def intent(self) -> Mapping[str, Any] | None:
        """The token of an apply that has begun or is done; `details` keeps it for its diff."""
        return self.details.get(_INTENT)

    def intending(self, token: Mapping[str, Any], snapshots: Collection[str]) -> "PlanResource":
        """About to be applied; until that is over, these snapshots are needed."""
        told = {_INTENT: dict(token), _NEEDED: sorted(snapshots)}
        return replace(self, details={**self.details, **told})

    def withdrawn(self) -> "PlanResource":
        rest = {k: v for k, v in self.details.items() if k not in (_INTENT, _NEEDED)}
        return replace(self, details=rest)

    def at_boundary(self, snapshot: str) -> "PlanResource":
        return replace(self, boundary=snapshot)

    @property
    def uncounted(self) -> int:
        """The bytes of snapshots since the last group that has a checkpoint of it."""
        return self.details.get(_UNCOUNTED, 0)

    def owing(self, uncounted: int) -> "PlanResource":
        if uncounted == self.uncounted:
            return self
        rest = {key: value for key, value in self.details.items() if key != _UNCOUNTED}
        return replace(self, details={**rest, **({_UNCOUNTED: uncounted} if uncounted else {})})

    def removed(self) -> "PlanResource":
        return replace(self, status=SandboxStatus.REMOVED)

    @property
    def cut_out(self) -> Mapping[str, str]:
        """Paths inside of it that belong to other resources of the plan, each with whose it is."""
        return self.details.get(CUT_OUT, {})

    def missing(self) -> "PlanResource":
        """For people: what is on record does not change by that."""
        return replace(self, status=SandboxStatus.MISSING)

    @property
    def rebuilding(self) -> "Rebuilding | None":
        """How the sandbox is being made again; until that is done, nothing in it counts."""
        told = self.details.get(_REBUILDING)
        return Rebuilding(**told) if told else None

    def begin_rebuilding(self, how: "Rebuilding") -> "PlanResource":
        return replace(self, details={**self.details, _REBUILDING: asdict(how)})

    def rebuilt(self) -> "PlanResource":
        rest = {key: value for key, value in self.details.items() if key != _REBUILDING}
        return replace(self, details=rest)


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
    """What `plan use` found out about a real resource before it made a plan on it."""

    location: str
    base: str
    notices: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
