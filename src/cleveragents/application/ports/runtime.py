"""The needs of the use cases, as Protocols; adapters in `infrastructure` meet them.

Every call may be repeated after a crash, and raises if it did not do its work.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct, field

from cleveragents.application.ports.database import (
    AppliedRepository,
    CheckpointRepository,
    CorrectionRepository,
    DecisionRepository,
    EffectRepository,
    MessageRepository,
    PlanRepository,
    ResourceRepository,
    TimelineRepository,
    ToolCallRepository,
)
from cleveragents.application.ports.in_place import (
    PlaceNotes,
    SparingRestores,
    StepProcesses,
)
from cleveragents.application.ports.locks import PlanLocks
from cleveragents.application.ports.merging import Applying, SubplanRepository
from cleveragents.domain.action import Action, ResourceSpec, Step, ToolSpec
from cleveragents.domain.changes import FileChange, ResourceDiff
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.confinement import Confinement
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.events import Event
from cleveragents.domain.footprint import Reach
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, ResourceInspection, SandboxAddress
from cleveragents.domain.resource_kinds import ResourceType
from cleveragents.domain.tool_schema import CallProblem


class Clock(Protocol):
    def now(self) -> datetime:
        """The present moment in UTC."""
        ...

    def pause(self, seconds: float) -> None: ...


class IdSource(Protocol):
    def new(self) -> str:
        """A ULID that was never given out before."""
        ...


class EventSink(Protocol):
    def emit(self, event: Event) -> None: ...


class Whereabouts(Protocol):
    def around(self) -> Sequence[str]:
        """The folders one stands in: the innermost first, up to the top of the repository, or of
        everything."""
        ...


# --- database -----------------------------------------------------------------------------------


class UnitOfWork(Protocol):
    """One transaction: leaving it undoes it, only `commit` keeps it. Whatever writes raises
    PlanOvertakenError if another process has taken the plan over."""

    @property
    def plans(self) -> PlanRepository: ...
    @property
    def resources(self) -> ResourceRepository: ...
    @property
    def decisions(self) -> DecisionRepository: ...
    @property
    def tool_calls(self) -> ToolCallRepository: ...
    @property
    def checkpoints(self) -> CheckpointRepository: ...
    @property
    def timelines(self) -> TimelineRepository: ...
    @property
    def applied(self) -> AppliedRepository: ...
    @property
    def effects(self) -> EffectRepository: ...
    @property
    def subplans(self) -> SubplanRepository: ...
    @property
    def corrections(self) -> CorrectionRepository: ...
    @property
    def messages(self) -> MessageRepository: ...
    def commit(self) -> None: ...


class UnitOfWorkFactory(Protocol):
    def __call__(self) -> AbstractContextManager[UnitOfWork]:
        """A transaction that may write; it is alone in writing from its first line on."""
        ...

    def reading(self) -> AbstractContextManager[UnitOfWork]:
        """One consistent view that never waits for a writer."""
        ...


# --- sandboxes and snapshots --------------------------------------------------------------------


class SandboxMaking(Protocol):
    """Makes and removes the isolated copies, and tells what was changed in them."""

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId | None, *, include_uncommitted: bool
    ) -> ResourceInspection:
        """Check that a plan can work on the real resource. Raises ResourceError.

        For a plan, what it will stand on is held; without one nothing is written.
        """
        ...

    def create(self, resource: PlanResource) -> None:
        """Make the sandbox; what an interrupted creation left behind is replaced."""
        ...

    def check(self, resource: PlanResource) -> None:
        """Raise SandboxMissingError unless the sandbox is there and is ours."""
        ...

    def secure(self, resource: PlanResource) -> bool:
        """After a power cut: False if something of the sandbox that captures do not read was
        broken, and has to come from a snapshot."""
        ...

    def remove(self, resource: PlanResource) -> None: ...
    def remove_copy(self, resource: PlanResource) -> None:
        """The sandbox alone: what an apply can be taken back by stays, until `release`."""
        ...

    def release(self, resource: PlanResource) -> None:
        """Let go of what `inspect` pinned for a plan that will not be made or is over."""
        ...

    def diff(self, resource: PlanResource) -> ResourceDiff:
        """What the sandbox holds now against what it was made from."""
        ...

    # Only what of that no apply brings, or has brought; for less than all of it.
    def left_behind(self, resource: PlanResource) -> tuple[str, ...]: ...

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        """What was applied, for a plan whose sandbox may be gone."""
        ...


class Sandboxes(SandboxMaking, Applying, StepProcesses, PlaceNotes, Protocol):
    """The isolated copies, whatever their type; one adapter per type does what the two say."""

    # The names of all files that are not what the sandbox was made from; nothing of them.
    def only_here(self, resource: PlanResource) -> tuple[str, ...]: ...
    def path_for(self, plan_id: PlanId, name: str, type_: ResourceType, location: str = "") -> str:
        """Where the sandbox of this resource will be; one that is a file keeps the file name."""
        ...

    def branch(self, parent: PlanResource, child: PlanResource) -> Snapshot:
        """Make the sandbox of a child plan from its parent's, as that is now; like `create`.

        Gives back its first snapshot, for which what certainly is the parent's is not read again.
        """
        ...

    def make_durable(self, resources: Collection[PlanResource]) -> None:
        """What was written for these, in their sandboxes and in the project, is on the disk when
        this returns: to be called before a record says that it is there."""
        ...

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        """What the sandbox holds now against one of its snapshots; nothing is written."""
        ...


class Restored(Struct, frozen=True, kw_only=True):
    """What a restore did: the state now, and each path that differed before; `notes` are for
    people. `left` is what was spared in place, since no group holds it."""

    snapshot: Snapshot
    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Expected(Struct, frozen=True, kw_only=True):
    """A snapshot, and the hash that a checkpoint has for it."""

    ref: str
    state_hash: str


class Snapshots(Protocol):
    """Durable snapshots of sandboxes. What `capture` returned is on disk."""

    def capture(self, resource: PlanResource) -> Snapshot:
        """The sandbox as it is now; the same `ref` as before if nothing changed."""
        ...

    def known(self, resource: PlanResource, ref: str) -> Snapshot:
        """One that was captured before; what it had changed and cost is not told again."""
        ...

    def restore(self, resource: PlanResource, ref: str, *, together: bool = True) -> Restored:
        """Make the sandbox equal to the snapshot, and prove it by hash. Idempotent.

        Files get their old times if this goes back as a whole, `together` with everything else of
        the plan, and the present time if not.
        """
        ...

    def restore_paths(self, resource: PlanResource, ref: str, paths: Collection[str]) -> Restored:
        """The same for these files and folders only; everything else stays. Idempotent."""
        ...

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        """What `restore`, or with paths `restore_paths`, would change now; nothing is written."""
        ...

    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]:
        """Those that neither snapshot nor sandbox has, each with what was probably meant."""
        ...

    def verify_restorable(
        self, resource: PlanResource, ref: str, state_hash: str, paths: Collection[str] = ()
    ) -> None:
        """Raise SnapshotDamagedError unless what differs from the newest snapshot, or these paths
        of it, is there and unharmed: as much as a restore needs, unless something changed since
        then."""
        ...

    def changes_between(
        self, resource: PlanResource, old: str, new: str
    ) -> tuple[FileChange, ...]: ...

    def keep_only(
        self, resource: PlanResource, refs: Collection[str], *, if_worth: bool = False
    ) -> int:
        """Free what none of these needs; gives back the bytes freed.

        With `if_worth`, only if that is more than a little of what is stored: it costs a look at
        all of it. What stays then goes with a later one.
        """
        ...

    def forget(self, plan_id: PlanId) -> None:
        """Free everything stored for the plan."""
        ...

    def is_doubtful(self, resource: PlanResource) -> bool:
        """Whether the machine was started anew since the sandbox was last found to be what it
        should be: a power cut may have taken of it what no snapshot has lost."""
        ...

    def believe(self, resource: PlanResource) -> None:
        """It is what it should be, and was compared with that."""
        ...

    def release(self, resource: PlanResource) -> None:
        """Let go of what is kept in memory for the next look at the sandbox."""
        ...


class SnapshotStore(Snapshots, SparingRestores, Protocol):
    def damages(
        self, resource: PlanResource, snapshots: Collection[Expected]
    ) -> Mapping[Expected, str]:
        """Those of which not everything is there and unharmed, each with the reason.

        What several of them need is read once.
        """
        ...


# --- tools --------------------------------------------------------------------------------------


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a tool may touch: the sandboxes by resource name, and how long it may take.

    `servers` are the commands of the action's MCP servers by name; `reading_servers` have no tool
    that writes.
    """

    plan_id: PlanId
    sandboxes: Mapping[str, SandboxAddress]
    timeout: float
    confinement: Confinement = Confinement()
    servers: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    reading_servers: frozenset[str] = frozenset()


class Tools(Protocol):
    """The built-in tools and those of the action. Several plans may use them at the same time."""

    def stop(self, plan_id: PlanId) -> None:
        """End what is running for the plan; its call, and any later one, raises KeyboardInterrupt
        in the thread that made it."""
        ...

    def allow(self, plan_id: PlanId) -> None:
        """Take `stop` back: the plan may run again."""
        ...

    def end(self, plan_id: PlanId) -> None:
        """End all that is kept running for the plan between its calls, servers and agents, so that
        nothing of it writes any more. May be repeated. Raises ToolNotEndedError."""
        ...

    def close(self) -> None:
        """Nothing more is run: what tools keep between their calls is ended."""
        ...

    def refuse_if_stopped(self, plan_id: PlanId) -> None:
        """Raise KeyboardInterrupt if the plan is to stop."""
        ...

    def specs(self, action: Action | None) -> Sequence[ToolSpec]: ...
    def find(self, action: Action | None, name: str) -> ToolSpec:
        """Without an action, of the built-in ones. Raises ToolNotFoundError with a suggestion."""
        ...

    def check(self, action: Action, step: Step) -> Sequence[CallProblem]:
        """What is wrong with this call, judged without running it; empty if nothing is."""
        ...

    def is_held_to_reading(self, action: Action, spec: ToolSpec) -> bool:
        """Whether a tool that says it only reads cannot do otherwise on this machine."""
        ...

    def reach(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        action: Action,
        sandboxes: Mapping[str, str],
    ) -> Reach:
        """How far a call looks that was made in these sandboxes: built-in tools know, others may
        declare it, a validation looks at everything."""
        ...

    def run(self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Raises ToolError."""
        ...


# --- what most services need together ----------------------------------------------------------


class Workspace(Struct, frozen=True, kw_only=True):
    sandboxes: Sandboxes
    snapshots: SnapshotStore


class Runtime(Struct, frozen=True, kw_only=True):
    """What whoever works on plans stands on: their records, their locks, the time, new ids, and
    whom to tell what happens."""

    unit_of_work: UnitOfWorkFactory
    locks: PlanLocks
    clock: Clock
    ids: IdSource
    events: EventSink
