"""How groups, and all that belongs to them, become true: in one transaction.

In which order: the files before it (ADR 0002: whoever calls this has captured the sandboxes); in
it, decision, call and effect, each moving the plan's history on by one; the groups; where the
resources stand; the plan; what retention lets go. Events are told after the commit.
Why: a group names its decision, and has its place behind it. Retention has to see the new group,
and the plan is stored as it is with all of this.
What is not guaranteed: what is swept, and when. A transaction that fails leaves snapshots that
nothing names, and records that go leave their bytes until the next sweep.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import (
    Expected,
    Runtime,
    SnapshotStore,
    UnitOfWork,
)
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.pruning import Pruning
from cleveragents.application.services.checkpoints.recorded_with import (
    CommitExtras,
    store,
    store_corrections,
)
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointMoment
from cleveragents.domain.events import CheckpointRecorded
from cleveragents.domain.group_builder import GroupDraft, build_group, holds
from cleveragents.domain.ids import GroupId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource


def damages(
    snapshots: SnapshotStore,
    resources: Sequence[PlanResource],
    groups: Sequence[CheckpointGroup],
) -> Mapping[GroupId, str]:
    """The damaged groups in their order, each with the reason of its first damaged resource."""
    found: dict[GroupId, str] = {}
    for resource in resources:
        left = [group for group in groups if group.group_id not in found]
        found |= _damages_of(snapshots, resource, left)
    return {group.group_id: found[group.group_id] for group in groups if group.group_id in found}


def _damages_of(
    snapshots: SnapshotStore, resource: PlanResource, groups: Sequence[CheckpointGroup]
) -> Mapping[GroupId, str]:
    states = {group.group_id: group.state_of(resource.resource_id) for group in groups}
    needed = {
        group_id: Expected(ref=state.snapshot, state_hash=state.state_hash)
        for group_id, state in states.items()
        if state is not None
    }
    # Most groups share their snapshots: each is proven once, whoever needs it.
    damaged = snapshots.damages(resource, dict.fromkeys(needed.values()).keys())
    return {key: damaged[snapshot] for key, snapshot in needed.items() if snapshot in damaged}


class Committed(Struct, frozen=True, kw_only=True):
    """The plan as it is stored now, and what had changed since the snapshot before.

    `group` is the last that was added, `captured` what all sandboxes hold now and how they are on
    record. `notice` is what failed without being in the plan's way; `failed` says that it was the
    step.
    """

    plan: Plan
    changes: tuple[FileChange, ...] = ()
    group: CheckpointGroup | None = None
    captured: Capture | None = None
    notice: str | None = None
    failed: bool = False


class PastStep(Struct, frozen=True, kw_only=True):
    """A step that was taken before anything was on record of it: `plan` is what it is with the step
    done. `before` are moments of then, `after` of now."""

    plan: Plan
    before: Sequence[CheckpointMoment]
    after: Sequence[CheckpointMoment]
    additions: CommitExtras


class Recorder(Struct):
    _runtime: Runtime
    _pruning: Pruning
    _latest: CheckpointGroup | None = None

    def store(
        self,
        plan: Plan,
        moments: Sequence[CheckpointMoment],
        additions: CommitExtras,
        found: Capture,
        *,
        is_boundary: bool,
        unless_standing: bool = False,
    ) -> Committed:
        """A group for each of the moments, which are one state of things, after the additions.

        With `unless_standing` none, if the one that the plan stands on is the same already.
        """
        additions = additions.with_outcome(found.changes, found.touched)
        with self._runtime.unit_of_work() as uow:
            if unless_standing and self._stands_on(uow, plan, found):
                moments = ()
            plan = store(uow, plan, additions)
            plan, groups = self._add_groups(uow, plan, moments, found)
            settled = found.record_positions(uow, groups, is_boundary=is_boundary)
            pruned = self._keep(uow, plan, moments, additions)
            uow.commit()
        return self._told(plan, groups, additions, settled, len(pruned))

    def store_past(self, plan: Plan, past: PastStep, earlier: Capture, found: Capture) -> Committed:
        """The groups of before, the additions, and the groups of now, in this order.

        `plan` and what the sandboxes held `earlier` are as the last step has left them.
        """
        additions = past.additions.with_outcome(found.changes, found.touched)
        with self._runtime.unit_of_work() as uow:
            # The decision is stored first, since its groups name it; but its place in history is
            # behind them: going back to one of them takes it back, for it was never on record
            # without being carried out.
            done = store(uow, past.plan.tick(len(past.before)), additions)
            plan, groups = self._add_groups(uow, plan, past.before, earlier)
            resources = earlier.record_positions(uow, groups, is_boundary=False).resources
            found = replace(found, resources=resources)
            done = done.at(plan.head) if plan.head is not None else done
            plan, more = self._add_groups(uow, done, past.after, found)
            settled = found.record_positions(uow, more, is_boundary=True)
            groups += more
            pruned = self._keep(uow, plan, [*past.before, *past.after], additions)
            uow.commit()
        return self._told(plan, groups, additions, settled, len(pruned))

    def _stands_on(self, uow: UnitOfWork, plan: Plan, found: Capture) -> bool:
        """Whether going back to the plan's head would change nothing at all."""
        head = self._previous(uow, plan)
        return head is not None and holds(head, plan, found.snapshots)

    def _add_groups(
        self, uow: UnitOfWork, plan: Plan, moments: Sequence[CheckpointMoment], found: Capture
    ) -> tuple[Plan, list[CheckpointGroup]]:
        groups: list[CheckpointGroup] = []
        for moment in moments:
            plan, group = self._add_group(uow, plan, moment, found)
            groups.append(group)
        return plan, groups

    def _add_group(
        self, uow: UnitOfWork, plan: Plan, moment: CheckpointMoment, found: Capture
    ) -> tuple[Plan, CheckpointGroup]:
        plan = plan.tick()
        draft = GroupDraft(
            plan=plan,
            moment=moment,
            resources=found.resources,
            captured=found.snapshots,
            previous=self._previous(uow, plan),
            created_at=self._runtime.clock.now(),
        )
        group = build_group(draft, self._runtime.ids.new)
        uow.checkpoints.add(group)
        self._latest = group
        if moment.rollback_target is not None:
            only = moment.rollback_only
            plan = plan.begin_rollback(moment.rollback_target, group.group_id, only)
        return plan.at(group.head), group

    def _previous(self, uow: UnitOfWork, plan: Plan) -> CheckpointGroup | None:
        if plan.head is None:
            return None
        # Nearly always the one that was just added; what it captured never changes.
        if self._latest is not None and plan.head in self._latest.names():
            return self._latest
        return uow.checkpoints.holding(plan.head)

    def _keep(
        self,
        uow: UnitOfWork,
        plan: Plan,
        moments: Sequence[CheckpointMoment],
        additions: CommitExtras,
    ) -> Mapping[GroupId, str]:
        """The plan as it is now; gives back the groups that go for the new ones."""
        uow.plans.save(plan)
        store_corrections(uow, plan, additions)
        if not moments:
            return {}
        # Records first, content later: `sweep` frees it off the hot path.
        undo, spares = moments[0].undo_group, moments[0].spares
        also = {} if undo is None else {undo: "what was just done is undone with it"}
        if spares is not None:
            also[spares.group] = "what others changed since then is known by it"
        also |= {group: "it is about to be gone back to" for group in moments[0].needs}
        return self._pruning.prune_after_adding(uow, plan, also)

    def _told(
        self,
        plan: Plan,
        groups: Sequence[CheckpointGroup],
        additions: CommitExtras,
        found: Capture,
        pruned: int,
    ) -> Committed:
        """It is stored; what is kept in memory follows."""
        additions.let_know()
        for group in groups:
            self._runtime.events.emit(
                CheckpointRecorded(
                    group_id=group.group_id,
                    reason=group.reason,
                    label=group.label,
                    pruned=pruned if group is groups[-1] else 0,
                )
            )
        return Committed(
            plan=plan,
            changes=found.changes,
            group=groups[-1] if groups else None,
            captured=found.again(),
        )
