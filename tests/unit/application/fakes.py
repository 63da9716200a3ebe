"""Every port in memory, with one place through which faults come in.

`Faults.reach` is called at each port call. It can kill the "process" there: from then on nothing
that it tries has any effect, as after a power cut, and only what was committed or written is left.
"""

import hashlib
import json
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from cleveragents.application.actor_ports import Actor
from cleveragents.application.ports import (
    Restored,
    ToolContext,
)
from cleveragents.domain.acting import (
    Finished,
    Memory,
    Message,
    Outcome,
    PlacedStep,
    Proposal,
    Situation,
    Strategy,
    grown,
)
from cleveragents.domain.action import (
    Action,
    Parameter,
    ResourceSpec,
    ResourceType,
    Step,
    ToolSpec,
)
from cleveragents.domain.applying import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ChangeKind, FileChange, FileDiff, ResourceDiff
from cleveragents.domain.checkpoint import CheckpointGroup, PrunedCheckpoint, Snapshot
from cleveragents.domain.correction import Correction, Supersession
from cleveragents.domain.decision import (
    Decision,
    DecisionType,
    Dependency,
    Fork,
    ToolCall,
    ToolResult,
)
from cleveragents.domain.effects import Effect
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyRefusedError,
    CorrectionNotFoundError,
    DatabaseUnusableError,
    DecisionNotFoundError,
    PlanLockedError,
    PlanNotFoundError,
    SandboxMissingError,
    SnapshotDamagedError,
    ToolError,
    ToolNotFoundError,
)
from cleveragents.domain.events import Event
from cleveragents.domain.footprint import Footprint, Reads
from cleveragents.domain.ids import (
    CheckpointId,
    CorrectionId,
    DecisionId,
    EffectId,
    GroupId,
    PlanId,
    ResourceId,
)
from cleveragents.domain.plan import Plan
from cleveragents.domain.retention import GroupOutline
from cleveragents.domain.sandbox import PlanResource, ResourceInspection
from cleveragents.domain.subplan import ChildPlan

T = TypeVar("T")
Files = dict[str, str]
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Killed(BaseException):
    """What a SIGKILL looks like from inside."""


class Faults:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.kill_at: int | None = None
        self.errors: dict[str, list[BaseException | None]] = {}
        self._dead = False

    def reach(self, call: str) -> None:
        if self._dead:
            raise Killed(call)
        self.calls.append(call)
        if len(self.calls) == self.kill_at:
            self._dead = True
            raise Killed(call)
        waiting = self.errors.get(call)
        error = waiting.pop(0) if waiting else None
        if error is not None:
            raise error

    def fail(self, call: str, *errors: BaseException | None) -> None:
        """The next calls of this name raise these, one after the other; None lets one through."""
        self.errors.setdefault(call, []).extend(errors)

    def revive(self) -> None:
        """A new process: the calls are counted anew, and nothing is wrong any more."""
        self.calls, self.kill_at, self.errors, self._dead = [], None, {}, False


class TickingClock:
    """Each look at it is one second later."""

    def __init__(self) -> None:
        self.moment = datetime(2025, 3, 1, tzinfo=UTC)
        self.pauses: list[float] = []

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


class CountingIds:
    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        self._last += 1
        return "01" + "".join(_ALPHABET[(self._last >> s) & 31] for s in range(115, -1, -5))


class EventLog:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


class MemoryLocks:
    def __init__(self) -> None:
        self.holders: dict[PlanId, str] = {}

    @contextmanager
    def hold(self, plan_id: PlanId, operation: str) -> Generator[None]:
        if plan_id in self.holders:
            raise PlanLockedError(plan_id, self.holders[plan_id])
        self.holders[plan_id] = operation
        try:
            yield
        finally:
            del self.holders[plan_id]

    def stop_owner(self, plan_id: PlanId) -> None:
        """There is no other process."""

    def owner(self, plan_id: PlanId) -> str | None:
        return self.holders.get(plan_id)


# --- database -----------------------------------------------------------------------------------


@dataclass
class Tables:
    plans: dict[str, Plan] = field(default_factory=dict[str, Plan])
    actions: dict[str, Action] = field(default_factory=dict[str, Action])
    resources: dict[str, PlanResource] = field(default_factory=dict[str, PlanResource])
    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])
    tool_calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    groups: dict[str, CheckpointGroup] = field(default_factory=dict[str, CheckpointGroup])
    forks: dict[tuple[str, int], Fork] = field(default_factory=dict[tuple[str, int], Fork])
    pruned: dict[str, tuple[CheckpointGroup, PrunedCheckpoint]] = field(
        default_factory=dict[str, tuple[CheckpointGroup, PrunedCheckpoint]]
    )
    effects: dict[str, Effect] = field(default_factory=dict[str, Effect])
    children: dict[str, ChildPlan] = field(default_factory=dict[str, ChildPlan])
    dependencies: dict[tuple[str, str, str], Dependency] = field(
        default_factory=dict[tuple[str, str, str], Dependency]
    )
    corrections: dict[str, Correction] = field(default_factory=dict[str, Correction])
    supersessions: dict[tuple[str, str, str], Supersession] = field(
        default_factory=dict[tuple[str, str, str], Supersession]
    )
    messages: dict[tuple[str, str], Message] = field(default_factory=dict[tuple[str, str], Message])

    def copy(self) -> "Tables":
        return Tables(
            dict(self.plans),
            dict(self.actions),
            dict(self.resources),
            dict(self.decisions),
            dict(self.tool_calls),
            dict(self.groups),
            dict(self.forks),
            dict(self.pruned),
            dict(self.effects),
            dict(self.children),
            dict(self.dependencies),
            dict(self.corrections),
            dict(self.supersessions),
            dict(self.messages),
        )


class MemoryPlans:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, plan: Plan) -> None:
        assert plan.plan_id not in self._tables.plans
        self._tables.plans[plan.plan_id] = plan
        self._tables.actions[plan.plan_id] = plan.action

    def save(self, plan: Plan) -> None:
        self.get(plan.plan_id)
        self._tables.plans[plan.plan_id] = plan

    def get(self, plan_id: PlanId) -> Plan:
        if plan_id not in self._tables.plans:
            raise PlanNotFoundError(plan_id)
        return self._corrected(self._tables.plans[plan_id])

    def starting_with(self, prefix: str) -> Sequence[PlanId]:
        return sorted(PlanId(key) for key in self._tables.plans if key.startswith(prefix))

    def _corrected(self, plan: Plan) -> Plan:
        placed: list[tuple[int, PlacedStep]] = []
        for item in self._tables.corrections.values():
            made = self._tables.decisions.get(item.intervention_id or "")
            if made is None or item.plan_id != plan.plan_id or made.superseded:
                continue
            if item.replacement is not None and item.step_index is not None:
                step = PlacedStep(index=item.step_index, step=item.replacement)
                placed.append((made.position.seq, step))
        for made in self._tables.decisions.values():
            if made.plan_id == plan.plan_id and made.decided and not made.superseded:
                judges = made.type is DecisionType.VALIDATION_RESPONSE
                index = made.step_index or 0
                step = PlacedStep(index=index, step=made.decided.step, judges=judges)
                placed.append((made.position.seq, step))
        ordered = [step for _, step in sorted(placed, key=lambda item: item[0])]
        return replace(plan, action=grown(self._tables.actions[plan.plan_id], ordered))

    def list(self) -> Sequence[Plan]:
        plans = sorted(self._tables.plans.values(), key=lambda plan: plan.plan_id, reverse=True)
        return [self._corrected(plan) for plan in plans]


class MemoryResources:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, resource: PlanResource) -> None:
        self._tables.resources[resource.resource_id] = resource

    def save(self, resource: PlanResource) -> None:
        assert resource.resource_id in self._tables.resources
        self._tables.resources[resource.resource_id] = resource

    def of_plan(self, plan_id: PlanId) -> Sequence[PlanResource]:
        return [r for _, r in sorted(self._tables.resources.items()) if r.plan_id == plan_id]


class MemoryDecisions:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, decision: Decision) -> None:
        assert decision.decision_id not in self._tables.decisions
        self._tables.decisions[decision.decision_id] = decision

    def get(self, decision_id: DecisionId) -> Decision:
        if decision_id not in self._tables.decisions:
            raise DecisionNotFoundError(decision_id)
        return self._tables.decisions[decision_id]

    def of_plan(self, plan_id: PlanId) -> Sequence[Decision]:
        found = [d for d in self._tables.decisions.values() if d.plan_id == plan_id]
        return sorted(found, key=lambda decision: decision.position.seq)

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[DecisionId]) -> None:
        for decision in self.of_plan(plan_id):
            gone = decision.decision_id in superseded
            self._tables.decisions[decision.decision_id] = replace(decision, superseded=gone)

    def starting_with(self, prefix: str) -> Sequence[DecisionId]:
        return sorted(DecisionId(key) for key in self._tables.decisions if key.startswith(prefix))

    def depend(self, plan_id: PlanId, dependencies: Collection[Dependency]) -> None:
        for item in dependencies:
            key = (plan_id, item.decision_id, item.depends_on)
            self._tables.dependencies.setdefault(key, item)

    def dependencies(self, plan_id: PlanId) -> Sequence[Dependency]:
        found = sorted(self._tables.dependencies.items())
        return [item for (owner, _, _), item in found if owner == plan_id]


class MemoryToolCalls:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, call: ToolCall) -> None:
        assert call.decision_id in self._tables.decisions
        self._tables.tool_calls[call.call_id] = call

    def of_plan(self, plan_id: PlanId) -> Sequence[ToolCall]:
        found = [c for c in self._tables.tool_calls.values() if c.plan_id == plan_id]
        return sorted(found, key=lambda call: call.position.seq)

    def mark_undone(self, plan_id: PlanId, undone: Collection[str]) -> None:
        for call in self.of_plan(plan_id):
            self._tables.tool_calls[call.call_id] = replace(call, undone=call.call_id in undone)


class MemoryCheckpoints:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, group: CheckpointGroup) -> None:
        assert group.group_id not in self._tables.groups
        assert group.decision_id is None or group.decision_id in self._tables.decisions
        self._tables.groups[group.group_id] = group

    def get(self, group_id: GroupId) -> CheckpointGroup:
        if group_id not in self._tables.groups:
            raise DatabaseUnusableError("", f"checkpoint group {group_id} is missing")
        return self._tables.groups[group_id]

    def holding(self, checkpoint_id: CheckpointId) -> CheckpointGroup:
        for group in self._tables.groups.values():
            if any(item.checkpoint_id == checkpoint_id for item in group.checkpoints):
                return group
        raise DatabaseUnusableError("", f"checkpoint {checkpoint_id} is missing")

    def of_plan(self, plan_id: PlanId) -> Sequence[CheckpointGroup]:
        found = [g for g in self._tables.groups.values() if g.plan_id == plan_id]
        return sorted(found, key=lambda group: group.position.seq)

    def owner_of(self, name: str) -> PlanId | None:
        owners = (g.plan_id for g in self._tables.groups.values() if name in g.names())
        return next(owners, None)

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[GroupId]) -> None:
        for group in self.of_plan(plan_id):
            gone = group.group_id in superseded
            self._tables.groups[group.group_id] = replace(group, superseded=gone)

    def delete(self, removed: Mapping[GroupId, str], now: datetime) -> None:
        for group_id, reason in removed.items():
            group = self._tables.groups.pop(group_id, None)
            if group is not None:
                gone = PrunedCheckpoint(group_id=group_id, reason=reason, pruned_at=now)
                self._tables.pruned[group_id] = (group, gone)

    def pruned(self, plan_id: PlanId, name: str) -> PrunedCheckpoint | None:
        for group, gone in self._tables.pruned.values():
            if group.plan_id == plan_id and name in {*group.names(), group.label}:
                return gone
        return None

    def count(self, plan_id: PlanId) -> int:
        return len(self.of_plan(plan_id))

    def outlines(
        self,
        plan_id: PlanId,
        *,
        with_sizes: bool = True,
    ) -> Sequence[GroupOutline]:
        return [
            GroupOutline(
                group_id=group.group_id,
                label=group.label,
                labelled_by_hand=group.labelled_by_hand,
                created_at=group.created_at,
                size_bytes=group.size_bytes,
            )
            for group in self.of_plan(plan_id)
        ]


class MemoryTimelines:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, plan_id: PlanId, fork: Fork) -> None:
        assert (plan_id, fork.timeline) not in self._tables.forks
        self._tables.forks[plan_id, fork.timeline] = fork

    def of_plan(self, plan_id: PlanId) -> Sequence[Fork]:
        return [fork for (owner, _), fork in sorted(self._tables.forks.items()) if owner == plan_id]


class MemoryEffects:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def put(self, effect: Effect) -> None:
        assert effect.decision_id in self._tables.decisions
        self._tables.effects[effect.effect_id] = effect

    def remove(self, effect_id: EffectId) -> None:
        self._tables.effects.pop(effect_id, None)

    def get(self, effect_id: EffectId) -> Effect:
        if effect_id not in self._tables.effects:
            raise DatabaseUnusableError("", f"effect {effect_id} is missing")
        return self._tables.effects[effect_id]

    def of_plan(self, plan_id: PlanId) -> Sequence[Effect]:
        found = [e for e in self._tables.effects.values() if e.plan_id == plan_id]
        return sorted(found, key=lambda effect: effect.position.seq)


class MemorySubplans:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, child: ChildPlan) -> None:
        self._tables.children[child.plan_id] = child

    save = add

    def get(self, plan_id: PlanId) -> ChildPlan | None:
        return self._tables.children.get(plan_id)

    def of_parent(self, parent_id: PlanId) -> Sequence[ChildPlan]:
        return [c for c in self._tables.children.values() if c.parent_id == parent_id]

    def below(self, root_id: PlanId) -> Sequence[ChildPlan]:
        return [c for c in self._tables.children.values() if c.root_id == root_id]


class MemoryCorrections:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, correction: Correction) -> None:
        assert correction.correction_id not in self._tables.corrections
        self._tables.corrections[correction.correction_id] = correction

    def save(self, correction: Correction) -> None:
        if correction.correction_id not in self._tables.corrections:
            raise DatabaseUnusableError("", f"correction {correction.correction_id} is missing")
        self._tables.corrections[correction.correction_id] = correction

    def get(self, correction_id: CorrectionId) -> Correction:
        if correction_id not in self._tables.corrections:
            raise CorrectionNotFoundError(correction_id)
        return self._tables.corrections[correction_id]

    def of_plan(self, plan_id: PlanId) -> Sequence[Correction]:
        found = sorted(self._tables.corrections.values(), key=lambda item: item.correction_id)
        return [item for item in found if item.plan_id == plan_id]

    def supersede(self, plan_id: PlanId, items: Collection[Supersession]) -> None:
        for item in items:
            key = (plan_id, item.correction_id, item.decision_id)
            assert key not in self._tables.supersessions
            self._tables.supersessions[key] = item

    def supersessions(self, plan_id: PlanId) -> Sequence[Supersession]:
        found = [
            item for (owner, _, _), item in self._tables.supersessions.items() if owner == plan_id
        ]
        return sorted(found, key=lambda item: (item.position.seq, item.decision_id))


class MemoryMessages:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, plan_id: PlanId, messages: Collection[Message]) -> None:
        for item in messages:
            self._tables.messages.setdefault((plan_id, item.key), item)

    def chain(self, plan_id: PlanId, head: str) -> Sequence[Message]:
        found: list[Message] = []
        current: str | None = head
        while current is not None and (plan_id, current) in self._tables.messages:
            found.append(self._tables.messages[plan_id, current])
            current = found[-1].parent
        return found[::-1]

    def keep_only(self, plan_id: PlanId, heads: Collection[str]) -> int:
        kept = {item.key for head in heads for item in self.chain(plan_id, head)}
        mine = [key for key in self._tables.messages if key[0] == plan_id and key[1] not in kept]
        for key in mine:
            del self._tables.messages[key]
        return len(mine)


class MemoryUnitOfWork:
    def __init__(self, database: "MemoryDatabase", *, writing: bool) -> None:
        self._database = database
        self._writing = writing
        self._tables = tables = database.tables.copy()
        self.plans = MemoryPlans(tables)
        self.resources = MemoryResources(tables)
        self.decisions = MemoryDecisions(tables)
        self.tool_calls = MemoryToolCalls(tables)
        self.checkpoints = MemoryCheckpoints(tables)
        self.timelines = MemoryTimelines(tables)
        self.effects = MemoryEffects(tables)
        self.subplans = MemorySubplans(tables)
        self.corrections = MemoryCorrections(tables)
        self.messages = MemoryMessages(tables)

    def commit(self) -> None:
        assert self._writing
        self._database.keep(self._tables)


class MemoryDatabase:
    """`history` holds the tables as each commit left them."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._open = False
        self.tables = Tables()
        self.history: list[Tables] = []

    def __call__(self):
        return self._transaction(writing=True)

    def reading(self):
        return self._transaction(writing=False)

    def keep(self, tables: Tables) -> None:
        self._faults.reach("commit")
        self.tables = tables.copy()
        self.history.append(tables.copy())
        self._faults.reach("committed")

    @contextmanager
    def _transaction(self, *, writing: bool) -> Generator[MemoryUnitOfWork]:
        assert not self._open, "one connection has one transaction at a time"
        self._faults.reach("begin" if writing else "read")
        self._open = True
        try:
            yield MemoryUnitOfWork(self, writing=writing)
        finally:
            self._open = False


# --- sandboxes, snapshots, project --------------------------------------------------------------


class MemoryDisk:
    """The real project by location, and the sandboxes by path. It survives every crash.

    `kept` is what a project was before an apply that is not settled yet.
    """

    def __init__(self) -> None:
        self.projects: dict[str, Files] = {}
        self.kept: dict[str, Files] = {}
        self.sandboxes: dict[str, Files] = {}


def hash_files(files: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[FileChange, ...]:
    found: list[FileChange] = []
    for path in sorted(old.keys() | new.keys()):
        if path not in old:
            found.append(FileChange(path=path, kind=ChangeKind.ADDED))
        elif path not in new:
            found.append(FileChange(path=path, kind=ChangeKind.DELETED))
        elif old[path] != new[path]:
            found.append(FileChange(path=path, kind=ChangeKind.MODIFIED))
    return tuple(found)


class MemorySnapshots:
    """Like the real store: the same content has the same ref only as long as nothing changes."""

    def __init__(self, disk: MemoryDisk, faults: Faults) -> None:
        self._disk = disk
        self._faults = faults
        self.versions: dict[ResourceId, dict[str, Files]] = {}
        self.latest: dict[ResourceId, str] = {}
        self.damaged: set[str] = set()
        self.wrong_hashes = 0
        self.forgotten: list[PlanId] = []

    def capture(self, resource: PlanResource) -> Snapshot:
        self._faults.reach("capture")
        return self._taken(resource)

    def restore(self, resource: PlanResource, ref: str) -> Restored:
        return self._restored(resource, self._content(resource, ref))

    def restore_paths(self, resource: PlanResource, ref: str, paths: Collection[str]) -> Restored:
        wanted = self._content(resource, ref)
        files = self._disk.sandboxes[resource.sandbox_path]
        rest = {path: text for path, text in files.items() if path not in paths}
        chosen = {path: text for path, text in wanted.items() if path in paths}
        return self._restored(resource, {**rest, **chosen})

    def compare(
        self, resource: PlanResource, ref: str, paths: Collection[str] = ()
    ) -> tuple[FileChange, ...]:
        changes = differences(
            self._disk.sandboxes[resource.sandbox_path], self._content(resource, ref)
        )
        return tuple(change for change in changes if not paths or change.path in paths)

    def unknown_paths(
        self, resource: PlanResource, ref: str, paths: Collection[str]
    ) -> Mapping[str, str | None]:
        known = self._content(resource, ref) | self._disk.sandboxes[resource.sandbox_path]
        return {path: min(known) for path in paths if path not in known}

    def _restored(self, resource: PlanResource, wanted: Files) -> Restored:
        self._faults.reach("restore")
        files = self._disk.sandboxes[resource.sandbox_path]
        changes = differences(files, wanted)
        for change in changes:
            if change.kind is ChangeKind.DELETED:
                del files[change.path]
            else:
                files[change.path] = wanted[change.path]
            self._faults.reach("restored a file")
        snapshot = self._taken(resource)
        if self.wrong_hashes:
            self.wrong_hashes -= 1
            snapshot = replace(snapshot, state_hash="wrong")
        return Restored(snapshot=snapshot, changes=changes)

    def verify(
        self, resource: PlanResource, ref: str, state_hash: str, paths: Collection[str] = ()
    ) -> None:
        self._faults.reach("verify")
        if ref in self.damaged or hash_files(self._content(resource, ref)) != state_hash:
            raise SnapshotDamagedError(resource.name, "its hash differs")

    def changes_between(self, resource: PlanResource, old: str, new: str) -> tuple[FileChange, ...]:
        return differences(self._content(resource, old), self._content(resource, new))

    def adopt(
        self, parent: PlanResource, child: PlanResource, copied: Mapping[bytes, object]
    ) -> Snapshot:
        return self.capture(child)

    def release(self, resource: PlanResource) -> None:
        """Nothing is kept."""

    def keep_only(self, resource: PlanResource, refs: Collection[str]) -> int:
        self._faults.reach("keep_only")
        versions = self.versions.setdefault(resource.resource_id, {})
        missing = set(refs) - versions.keys()
        assert not missing, "what is kept must be there"
        latest = self.latest.get(resource.resource_id)
        gone = [ref for ref in versions if ref not in refs and ref != latest]
        for ref in gone:
            del versions[ref]
        return len(gone)

    def forget(self, plan_id: PlanId) -> None:
        self._faults.reach("forget")
        self.forgotten.append(plan_id)

    def _content(self, resource: PlanResource, ref: str) -> Files:
        versions = self.versions.get(resource.resource_id, {})
        if ref not in versions:
            raise SnapshotDamagedError(resource.name, f"{ref} is not there")
        return versions[ref]

    def since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        old = self._content(resource, ref)
        return _as_diff(old, self._disk.sandboxes[resource.sandbox_path], ())

    def _taken(self, resource: PlanResource) -> Snapshot:
        files = dict(self._disk.sandboxes[resource.sandbox_path])
        versions = self.versions.setdefault(resource.resource_id, {})
        before = versions.get(self.latest.get(resource.resource_id, ""), {})
        if not versions or before != files:
            number = sum(len(known) for known in self.versions.values()) + len(self._faults.calls)
            ref = f"{resource.name}@{number}-{hash_files(files)[:6]}"
            while ref in versions:
                ref += "'"
            versions[ref] = files
            self.latest[resource.resource_id] = ref
        return Snapshot(
            ref=self.latest[resource.resource_id],
            state_hash=hash_files(files),
            sandbox_ref=f"commit of {resource.name}",
            changes=(changes := differences(before, files)),
            footprint=Footprint(paths=frozenset(change.path for change in changes)),
            size_bytes=sum(len(text) for text in files.values()),
        )


class MemorySandboxes:
    def __init__(self, disk: MemoryDisk, faults: Faults) -> None:
        self._disk = disk
        self._faults = faults
        self.released: list[str] = []
        self.carried_out: list[str] = []
        self.left_behind: tuple[str, ...] = ()
        self.refusing: set[str] = set()
        self.prepared_with: list[ApplyOptions] = []

    def inspect(
        self, spec: ResourceSpec, plan_id: PlanId, *, include_uncommitted: bool
    ) -> ResourceInspection:
        self._faults.reach(f"inspect {spec.name}")
        self._disk.projects.setdefault(spec.location, {"README": "hello"})
        notices = ("takes uncommitted work along",) if include_uncommitted else ()
        return ResourceInspection(location=spec.location, base="base", notices=notices)

    def path_for(self, plan_id: PlanId, name: str, type_: ResourceType, location: str = "") -> str:
        return f"/sandboxes/{plan_id}/{name}"

    def create(self, resource: PlanResource) -> None:
        self._faults.reach(f"create {resource.name}")
        self._disk.sandboxes[resource.sandbox_path] = dict(self._disk.projects[resource.location])
        self._faults.reach(f"created {resource.name}")

    def branch(self, parent: PlanResource, child: PlanResource) -> Mapping[bytes, object]:
        self._faults.reach("branch")
        self._disk.sandboxes[child.sandbox_path] = dict(self._disk.sandboxes[parent.sandbox_path])
        return {}

    def check(self, resource: PlanResource) -> None:
        self._faults.reach("check")
        if resource.sandbox_path not in self._disk.sandboxes:
            raise SandboxMissingError(resource.name, resource.sandbox_path)

    def remove(self, resource: PlanResource) -> None:
        self._faults.reach("remove")
        self._disk.sandboxes.pop(resource.sandbox_path, None)

    def release(self, resource: PlanResource) -> None:
        self.released.append(resource.name)

    def diff(self, resource: PlanResource) -> ResourceDiff:
        if resource.sandbox_path not in self._disk.sandboxes:
            raise SandboxMissingError(resource.name, resource.sandbox_path)
        old = self._disk.projects[resource.location]
        return _as_diff(old, self._disk.sandboxes[resource.sandbox_path], self.left_behind)

    def applied_diff(self, resource: PlanResource, applied_ref: str) -> ResourceDiff:
        return ResourceDiff(patch=applied_ref)

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        self._faults.reach(f"prepare {resource.name}")
        self.prepared_with.append(options)
        files = dict(self._disk.sandboxes[resource.sandbox_path])
        return PreparedApply(
            resource_id=resource.resource_id, token={"files": files}, diff=self.diff(resource)
        )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        self._faults.reach(f"carry out {resource.name}")
        project = self._disk.projects[resource.location]
        self._disk.kept.setdefault(resource.location, dict(project))
        self._faults.reach(f"kept {resource.name}")
        if resource.name in self.refusing:
            raise ApplyRefusedError(f"{resource.name} is locked", "wait")
        if strange := self._foreign(resource, prepared):
            raise ApplyConflictError(resource.plan_id, resource.name, strange, "changed meanwhile")
        _become(project, prepared.token["files"], self._faults)
        self.carried_out.append(resource.name)
        self._faults.reach(f"carried out {resource.name}")
        return f"commit of {resource.name}"

    def take_back(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        self._faults.reach(f"take back {resource.name}")
        before = self._disk.kept.get(resource.location)
        if before is None:
            return ()
        project, ours = self._disk.projects[resource.location], prepared.token["files"]
        theirs = self._foreign(resource, prepared)
        stays = {path: text for path, text in project.items() if path in theirs or path not in ours}
        was = {path: text for path, text in before.items() if path not in theirs}
        _become(project, {**stays, **was}, self._faults)
        return tuple(theirs)

    def _foreign(self, resource: PlanResource, prepared: PreparedApply) -> list[str]:
        """Paths of the apply that hold neither what they did nor what they shall."""
        project, ours = self._disk.projects[resource.location], prepared.token["files"]
        before = self._disk.kept[resource.location]
        return sorted(p for p in ours if project.get(p) not in (before.get(p), ours[p]))

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        self._faults.reach(f"settle {resource.name}")
        self._disk.kept.pop(resource.location, None)


def _become(files: Files, wanted: Mapping[str, str], faults: Faults) -> None:
    for change in differences(files, wanted):
        if change.kind is ChangeKind.DELETED:
            del files[change.path]
        else:
            files[change.path] = wanted[change.path]
        faults.reach("changed a file of the project")


def _as_diff(
    old: Mapping[str, str], new: Mapping[str, str], left_behind: tuple[str, ...]
) -> ResourceDiff:
    files = tuple(
        FileDiff(path=change.path, kind=change.kind, insertions=1, deletions=0)
        for change in differences(old, new)
    )
    return ResourceDiff(files=files, left_behind=left_behind)


# --- tools and actors ---------------------------------------------------------------------------

TOOLS = (
    ToolSpec(name="append", writes=True, description="adds a line to two files, one by one"),
    ToolSpec(name="look"),
    ToolSpec(name="publish", writes=True, side_effects=("the page is public",)),
    ToolSpec(name="put", writes=True, side_effects=("a record",), idempotent=True),
    ToolSpec(name="book", side_effects=("a seat",), compensate="cancel", description="no files"),
    ToolSpec(name="cancel", parameters=(Parameter(name="line"), Parameter(name="output"))),
    ToolSpec(name="hire", side_effects=("a van",), compensate="return", writes=True),
    ToolSpec(name="return", idempotent=True, parameters=(Parameter(name="exit_code"),)),
    ToolSpec(name="untraceable", writes=True, checkpointable=False),
    ToolSpec(name="slow", writes=True, timeout=7.0),
)


class MemoryTools:
    """`append` is not idempotent, and can be caught between its two files."""

    def __init__(self, disk: MemoryDisk, faults: Faults) -> None:
        self._disk = disk
        self._faults = faults
        self.broken: set[str] = set()
        self.contexts: list[ToolContext] = []
        self.ran: list[tuple[str, dict[str, Any]]] = []

    def stop(self, plan_id: PlanId) -> None:
        """Nothing runs between two calls."""

    def allow(self, plan_id: PlanId) -> None:
        """Nothing was stopped."""

    def close(self) -> None:
        """Nothing is kept between two calls."""

    def refuse_if_stopped(self, plan_id: PlanId) -> None:
        """Nothing was stopped."""

    def specs(self, action: Action | None) -> Sequence[ToolSpec]:
        return [*TOOLS, *(action.tools if action else ())]

    def find(self, action: Action | None, name: str) -> ToolSpec:
        for spec in self.specs(action):
            if spec.name == name:
                return spec
        raise ToolNotFoundError(name, None)

    def check(self, action: Action, step: Step) -> Sequence[str]:
        return []

    def reads(self, action: Action, step: Step) -> Reads:
        return {}

    def run(self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        self._faults.reach("run a tool")
        self.contexts.append(context)
        self.ran.append((spec.name, dict(arguments)))
        if not spec.writes:
            if spec.name in self.broken:
                raise ToolError(f"{spec.name} is broken", "mend it")
            self._faults.reach("ran a tool")
            return ToolResult(output="seen\n", values={"size": 4})
        name = spec.resource or arguments.get("resource") or next(iter(context.sandboxes))
        files = self._disk.sandboxes[context.sandboxes[name]]
        self._append(files, "one.txt", arguments["line"])
        if arguments["line"] in self.broken:
            raise ToolError("the tool is broken", "mend it")
        self._append(files, "two.txt", arguments["line"])
        return ToolResult(output="appended", values={"exit_code": 0})

    def _append(self, files: Files, path: str, line: str) -> None:
        files[path] = files.get(path, "") + line + "\n"
        self._faults.reach("wrote a file")


class ListActor:
    """Takes the steps of the action in their order, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def strategize(self, situation: Situation) -> Strategy:
        return Strategy(steps=tuple(step.name for step in situation.action.steps))

    def decide(self, situation: Situation) -> Proposal | Finished:
        index, steps, state = situation.step_index, situation.action.steps, situation.state
        self.asked.append(index)
        if index >= len(steps):
            return Finished(memory=Memory(state=state))
        return Proposal(
            step=steps[index],
            question=f"What is step {index}?",
            rationale="the list says so",
            memory=Memory(state={"seen": [*state.get("seen", []), steps[index].name]}),
            alternatives=("wait",),
            confidence=0.5,
        )

    def hear(self, action: Action, state: Mapping[str, Any], outcome: Outcome) -> Memory:
        return Memory(state=state)


class OneActor:
    """Implements the port Actors with the one that is given."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def check(self, action: Action) -> None:
        """It is there."""

    def of(self, action: Action) -> Actor:
        return self.actor

    def release(self, plan_id: PlanId) -> None:
        pass  # nothing runs for it


class OneAction:
    def __init__(self, action: Action) -> None:
        self.action = action

    def read(self, path: str, overrides: Mapping[str, str]) -> Action:
        return self.action

    def read_step(self, path: str, action: Action, index: int) -> Step:
        return replace(action.steps[index], name=path)

    def read_steps(self, path: str, action: Action) -> Sequence[Step]:
        return (replace(action.steps[0], name=path),)
