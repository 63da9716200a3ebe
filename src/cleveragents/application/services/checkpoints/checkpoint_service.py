"""Checkpoint groups: when one is recorded, what it holds, and which ones go again.

What: a group is one look at all sandboxes, together with where the plan and its actor stand.
In which order: the sandboxes are captured, which is durable by itself; then one transaction stores
the group and all that becomes true with it: the commit is in `recording.py`.
Why: a group on record has its bytes, whenever a kill comes; bytes that no group names are swept.
What is not guaranteed: one instant for all sandboxes. Who calls sees to it that nobody writes.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.plan_events import tell_recovered
from cleveragents.application.ports.runtime import (
    Runtime,
    SnapshotStore,
)
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.held import HeldPlan, HeldResources
from cleveragents.application.services.checkpoints.naming import named_group, timeline_of
from cleveragents.application.services.checkpoints.pruning import (
    Explained,
    Pruning,
    RetentionLimits,
    pins,
)
from cleveragents.application.services.checkpoints.recorded_with import (
    NO_EXTRAS,
    CommitExtras,
    store,
)
from cleveragents.application.services.checkpoints.recording import (
    Committed,
    PastStep,
    Recorder,
    damages,
)
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import (
    CheckpointGroup,
    CheckpointMoment,
    CheckpointReason,
    Trigger,
)
from cleveragents.domain.checkpoint_lookup import looks_like_an_ordinal
from cleveragents.domain.errors import (
    CheckpointNeededError,
    LabelIsNumberError,
    LabelTakenError,
    PlanError,
    PlanStateError,
)
from cleveragents.domain.group_builder import hash_of, plan_state
from cleveragents.domain.ids import GroupId, PlanId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.selection import Selection

if TYPE_CHECKING:
    from cleveragents.domain.timeline import Timeline


class CheckpointPolicy(Struct, frozen=True, kw_only=True):
    """What the settings say about checkpoints."""

    triggers: frozenset[Trigger]
    limits: RetentionLimits


class CheckpointService:
    def __init__(
        self, runtime: Runtime, snapshots: SnapshotStore, policy: CheckpointPolicy
    ) -> None:
        self._runtime = runtime
        self._snapshots = snapshots
        self._triggers = policy.triggers
        self._pruning = Pruning(runtime, snapshots, policy.limits)
        self._recorder = Recorder(runtime, self._pruning)

    # --- recording ------------------------------------------------------------------------------

    def record_decision(
        self,
        plan: Plan,
        resources: HeldResources,
        moment: CheckpointMoment,
        additions: CommitExtras = NO_EXTRAS,
        before_write: CheckpointMoment | None = None,
    ) -> Plan:
        """Store a decision with the group that lets people come back to the moment before it.

        Where a write follows at once, the group before it is stored in the same transaction.
        """
        wanted = plan.action.rollback_policy.enabled
        moments = [moment]
        if before_write is not None and self.is_on(Trigger.ON_TOOL_WRITE):
            moments.append(before_write)
        return self._commit(plan, resources, moments, additions, with_group=wanted).plan

    def auto_create_if_configured(
        self,
        trigger: Trigger,
        plan: Plan,
        resources: HeldResources,
        moment: CheckpointMoment,
        additions: CommitExtras = NO_EXTRAS,
        *,
        anyway: bool = False,
    ) -> Committed:
        """Store the plan's progress, and a group with it if the settings name this trigger, or if
        it is needed `anyway`."""
        wanted = (anyway or self.is_on(trigger)) and plan.action.rollback_policy.enabled
        return self._commit(plan, resources, [moment], additions, with_group=wanted)

    def record(
        self,
        plan: Plan,
        resources: HeldResources,
        moment: CheckpointMoment,
        additions: CommitExtras = NO_EXTRAS,
        found: Capture | None = None,
    ) -> tuple[Plan, CheckpointGroup]:
        """A group whatever the settings say: by hand, or as the safety net of a rollback.

        `found` is a look at the sandboxes that the caller has just had.
        """
        found = found or self.capture(resources)
        boundary = not moment.mid_step
        done = self._recorder.store(plan, [moment], additions, found, is_boundary=boundary)
        assert done.group is not None
        return _known(resources, done).plan, done.group

    def save_progress(self, plan: Plan, additions: CommitExtras = NO_EXTRAS) -> Plan:
        """Store progress that changed no file."""
        with self._runtime.unit_of_work() as uow:
            plan = store(uow, plan, additions)
            uow.plans.save(plan)
            uow.commit()
        additions.let_know()
        return plan

    def complete(
        self,
        plan: Plan,
        resources: HeldResources,
        moment: CheckpointMoment,
        additions: CommitExtras,
    ) -> Plan:
        """Store that the plan is complete, together with a group that holds exactly its state.

        That may be the one it stands on. The caller has ended all that could still write.
        """
        moments = [moment] if plan.action.rollback_policy.enabled else []
        done = self._recorder.store(
            plan,
            moments,
            additions,
            self.capture(resources),
            is_boundary=True,
            unless_standing=True,
        )
        return _known(resources, done).plan

    def record_past(
        self, plan: Plan, resources: HeldResources, past: PastStep, found: Capture
    ) -> Committed:
        """Store a step that was seen only by what it has changed, which was `found`.

        The groups before it hold what the step before it had left.
        """
        before = {
            r.resource_id: self._snapshots.known(r, r.boundary or "") for r in found.resources
        }
        earlier = Capture(resources=found.resources, snapshots=before)
        return _known(resources, self._recorder.store_past(plan, past, earlier, found))

    def capture(self, resources: HeldResources) -> Capture:
        """Every sandbox of the plan as it is now, on disk but not on record."""
        captured = resources.capturable
        snapshots = {r.resource_id: self._snapshots.capture(r) for r in captured}
        resources.last_capture = Capture(resources=captured, snapshots=snapshots)
        return resources.last_capture

    def written(self, resources: HeldResources) -> Sequence[str]:
        """The paths in which the sandboxes differ from what they were when the step began."""
        found = self.capture(resources)
        many = len(found.resources) > 1
        return [
            f"{resource.name}:{change.path}" if many else change.path
            for resource in found.moved
            for change in self._snapshots.changes_between(
                resource, resource.boundary or "", found.snapshots[resource.resource_id].ref
            )
        ]

    def create(self, held: HeldPlan, label: str) -> CheckpointGroup:
        """A group by hand, labelled."""
        plan, resources = held.plan, held.resources
        plan.refuse_if_final()
        if looks_like_an_ordinal(label):
            raise LabelIsNumberError(label)
        if not resources.capturable:
            raise PlanStateError(
                f"plan {plan.plan_id} has not started, so there is nothing to capture yet",
                f"agents plan execute {plan.plan_id}",
            )
        with self._runtime.unit_of_work.reading() as uow:
            if uow.checkpoints.has_own_label(plan.plan_id, label):
                raise LabelTakenError(label, plan.plan_id)
            head = uow.checkpoints.holding(plan.head) if plan.head else None
        moment = CheckpointMoment(
            reason=CheckpointReason.MANUAL,
            source="user",
            label=label,
            decision_id=head.decision_id if head else None,
            step_index=plan.last_completed_step + 1,
            # Between steps, what a person edited in a sandbox becomes part of the plan.
            mid_step=stands_mid_step(plan, resources, head),
            labelled_by_hand=True,
        )
        _, group = self.record(plan, resources, moment)
        return group

    def _commit(
        self,
        plan: Plan,
        resources: HeldResources,
        moments: Sequence[CheckpointMoment],
        additions: CommitExtras,
        *,
        with_group: bool,
    ) -> Committed:
        """One transaction, with a group for each of the moments, which are one state of things.

        The sandboxes are looked at, unless that was done and nothing has run since.
        """
        is_boundary = not moments[0].mid_step
        found = Capture(resources=())
        if with_group or is_boundary:
            found = resources.last_capture or self.capture(resources)
        kept = moments if with_group else ()
        done = self._recorder.store(plan, kept, additions, found, is_boundary=is_boundary)
        return _known(resources, done)

    # --- looking --------------------------------------------------------------------------------

    def list_checkpoints(self, plan_id: PlanId) -> Sequence[CheckpointGroup]:
        """All groups of the plan, oldest first. Raises PlanNotFoundError."""
        with self._runtime.unit_of_work.reading() as uow:
            uow.plans.get(plan_id)
            return uow.checkpoints.of_plan(plan_id)

    def get_checkpoint(self, plan_id: PlanId, wanted: str) -> CheckpointGroup:
        """The group that a person names: by id, label, number, or a part of these."""
        with self._runtime.unit_of_work.reading() as uow:
            uow.plans.get(plan_id)
            return named_group(uow, plan_id, wanted)

    def timeline(self, plan_id: PlanId) -> "Timeline":
        """The plan's history as people read it. Raises PlanNotFoundError."""
        with self._runtime.unit_of_work.reading() as uow:
            return timeline_of(uow, plan_id, uow.tool_calls.of_plan(plan_id))

    def notes_at(self, plan: Plan) -> Sequence[str]:
        """What was unusual about the group that the plan stands on."""
        if plan.head is None:
            return ()
        with self._runtime.unit_of_work.reading() as uow:
            return uow.checkpoints.holding(plan.head).notes

    def is_on(self, trigger: Trigger) -> bool:
        return trigger in self._triggers

    def verify_restorable(
        self, resources: HeldResources, group: CheckpointGroup, only: Selection | None
    ) -> None:
        """Raise SnapshotDamagedError unless all that would have to be restored, or what is selected
        of it, is there and unharmed."""
        for resource in resources.capturable:
            state = group.state_of(resource.resource_id)
            paths = only.paths.get(resource.name) if only is not None else ()
            if state is not None and paths is not None:
                self._snapshots.verify_restorable(resource, state.snapshot, state.state_hash, paths)

    def damages(self, groups: Sequence[CheckpointGroup]) -> Mapping[GroupId, str]:
        """Those of a plan's groups that could not be restored, each with the reason."""
        if not groups:
            return {}
        resources = self._snapshots_left(groups[0].plan_id)
        return damages(self._snapshots, resources, groups)

    def changes_between(
        self, old: CheckpointGroup, new: CheckpointGroup
    ) -> Sequence[tuple[str, FileChange]]:
        """What differs from `old` to `new`, each change with its resource's name."""
        found: list[tuple[str, FileChange]] = []
        for resource in self._snapshots_left(old.plan_id):
            before, after = old.state_of(resource.resource_id), new.state_of(resource.resource_id)
            if before is None or after is None:
                continue
            changes = self._snapshots.changes_between(resource, before.snapshot, after.snapshot)
            found.extend((resource.name, change) for change in changes)
        return found

    def _snapshots_left(self, plan_id: PlanId) -> Sequence[PlanResource]:
        """The resources of which there are snapshots, for whoever only looks."""
        with self._runtime.unit_of_work.reading() as uow:
            # The snapshots of an applied plan are freed: an empty answer would be a lie.
            uow.plans.get(plan_id).refuse_if_final()
            return HeldResources(uow.resources.of_plan(plan_id)).capturable

    def head_of(self, plan: Plan) -> CheckpointGroup | None:
        """The group that the plan stands on."""
        if plan.head is None:
            return None
        with self._runtime.unit_of_work.reading() as uow:
            return uow.checkpoints.holding(plan.head)

    # --- letting go -----------------------------------------------------------------------------

    def delete(self, plan: Plan, group: CheckpointGroup) -> int:
        """Delete one group; gives back the bytes freed. The caller holds the plan's lock."""
        if group.group_id in pins(plan):
            raise CheckpointNeededError(group.group_id, plan.plan_id, pins(plan)[group.group_id])
        if plan.head in group.names():
            raise CheckpointNeededError(group.group_id, plan.plan_id, "the plan stands on it")
        with self._runtime.unit_of_work() as uow:
            removed = {group.group_id: "deleted by hand"}
            uow.checkpoints.delete(plan.plan_id, removed, self._runtime.clock.now())
            uow.commit()
        return self.sweep(plan.plan_id)

    def explain_retention(self, plan: Plan) -> Explained:
        """What pruning would do now, with the reason for each group."""
        return self._pruning.explain(plan)

    def prune(self, plan: Plan) -> tuple[Explained, int]:
        """Do it; gives back the bytes freed too. The caller holds the plan's lock."""
        done = self._pruning.prune(plan)
        return done, self.sweep(plan.plan_id)

    def count_after(self, held: HeldPlan, target: CheckpointGroup, added: int) -> int:
        """How many groups there would be after a rollback to `target` that adds some.

        The first of them keeps the present, which may be the state that the plan stands on.
        """
        plan = held.plan
        ids = [GroupId(self._runtime.ids.new()) for _ in range(added)]
        states: dict[GroupId, str] = {group: group for group in ids}
        head = self.head_of(plan)
        if head is not None and self._pruning.is_at_its_limit(plan, added):
            states |= {ids[0]: head.state_hash} if self._is_at(held, head) else {}
        return self._pruning.left_after_adding(plan, states, target.group_id)

    def _is_at(self, held: HeldPlan, group: CheckpointGroup) -> bool:
        """Whether a group of the present would hold the same state; nothing is written."""
        states = ((r, group.state_of(r.resource_id)) for r in held.resources.capturable)
        differs = (s is None or self._snapshots.compare(r, s.snapshot) for r, s in states)
        return group.plan_hash == hash_of(plan_state(held.plan)) and not any(differs)

    def sweep(self, plan_id: PlanId) -> int:
        """Free what no group and no step boundary needs any more; gives back the bytes freed."""
        return self._pruning.sweep(plan_id)

    def free_space(self, plan_id: PlanId, *, if_worth: bool = False) -> None:
        """The same after other work, which is done and stored whether this succeeds or not; with
        `if_worth` only if it pays, for somebody waits."""
        try:
            self._pruning.sweep(plan_id, if_worth=if_worth)
        except PlanError as error:
            tell_recovered(self._runtime.events, f"old snapshots stay for now: {error.message}")


def stands_mid_step(plan: Plan, resources: HeldResources, head: CheckpointGroup | None) -> bool:
    """Whether a step is half done: a rollback can lead there, too, and the plan waits then.

    `head` is the group that the plan stands on.
    """
    if plan.mid_step or head is None:
        return plan.mid_step
    waits = plan.phase is Phase.EXECUTE and plan.state is State.QUEUED
    boundaries = {r.resource_id: r.boundary for r in resources.capturable}
    return waits and head.is_mid_step(boundaries)


def _known(resources: HeldResources, done: Committed) -> Committed:
    """It is stored, so that whoever comes next need not look."""
    if done.captured is not None:
        resources.put(done.captured.resources)
        resources.last_capture = done.captured if done.captured.snapshots else None
    return done
