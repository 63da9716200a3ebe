"""Letting go of checkpoint groups: what the rule says, first in the record, then on disk.

What: `CheckpointRetentionPolicy` decides; here are the pins, and what a sweep has to leave.
In which order: the rows of groups, in the transaction that adds one; their bytes later (`sweep`),
by asking anew what groups, step boundaries and open spawns still need.
Why: a kill in between leaves bytes that nothing names, never a group without its bytes. And to add
a group does not wait for the freeing.
What is not guaranteed: the limits. What is pinned, labelled, first or newest stays beyond them.
"""

from collections.abc import Mapping, Sequence, Set
from datetime import timedelta

from msgspec import Struct, field

from cleveragents.application.ports.runtime import (
    Runtime,
    SnapshotStore,
    UnitOfWork,
)
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.domain.actor_protocol import HEAD
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.correction import CorrectionStatus
from cleveragents.domain.decision import Decision
from cleveragents.domain.ids import GroupId, PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.retention import (
    CheckpointRetentionPolicy,
    GroupOutline,
    RetentionDecision,
    StateCounts,
)


class RetentionLimits(Struct, frozen=True, kw_only=True):
    """What the settings say; the action of a plan may have a number of its own."""

    max_states: int
    max_age: timedelta | None = None
    max_total_bytes: int = 0

    def rule_for(self, plan: Plan) -> CheckpointRetentionPolicy:
        return CheckpointRetentionPolicy(
            max_states=plan.action.rollback_policy.max_checkpoints or self.max_states,
            max_age=self.max_age,
            max_total_bytes=self.max_total_bytes,
        )


class Explained(Struct, frozen=True, kw_only=True):
    """The groups of a plan, oldest first, and what the rule says about each."""

    groups: tuple[GroupOutline, ...]
    decision: RetentionDecision


class Pruning(Struct, frozen=True):
    _runtime: Runtime
    _snapshots: SnapshotStore
    _limits: RetentionLimits
    _room_until: dict[PlanId, int] = field(default_factory=dict[PlanId, int])

    def explain(self, plan: Plan) -> Explained:
        with self._runtime.unit_of_work.reading() as uow:
            pinned = {**_standing(uow, plan), **_compared(uow, plan), **pins(plan)}
            return self._explained(plan, uow.checkpoints.outlines(plan.plan_id), pinned)

    def prune(self, plan: Plan) -> Explained:
        """The record only; the caller sweeps the bytes."""
        with self._runtime.unit_of_work() as uow:
            pinned = {**_standing(uow, plan), **_compared(uow, plan), **pins(plan)}
            found = self._explained(plan, uow.checkpoints.outlines(plan.plan_id), pinned)
            uow.checkpoints.delete(plan.plan_id, found.decision.removed, self._runtime.clock.now())
            uow.commit()
        return found

    def prune_after_adding(
        self, uow: UnitOfWork, plan: Plan, also: Mapping[GroupId, str]
    ) -> Mapping[GroupId, str]:
        """In the transaction that added a group; `also` is needed beside what the plan names."""
        rule = self._limits.rule_for(plan)
        if rule.counts_only and self._has_room(uow, plan, rule):
            return {}
        # The head needs no pin: it is in the group that was just added, the most recent.
        outlines = uow.checkpoints.outlines(plan.plan_id, counts_only=rule.counts_only)
        pinned = {**_compared(uow, plan), **pins(plan), **also}
        removed = self._explained(plan, outlines, pinned).decision.removed
        uow.checkpoints.delete(plan.plan_id, removed, self._runtime.clock.now())
        return removed

    def _has_room(self, uow: UnitOfWork, plan: Plan, rule: CheckpointRetentionPolicy) -> bool:
        """Counted only once in a while, for that is to look at every group: a plan cannot have got
        more groups since then than its history has gone on."""
        if plan.seq > self._room_until.get(plan.plan_id, -1):
            room = rule.room(uow.checkpoints.state_counts(plan.plan_id))
            self._room_until[plan.plan_id] = plan.seq + room
        return plan.seq <= self._room_until[plan.plan_id]

    def is_at_its_limit(self, plan: Plan, added: int) -> bool:
        """Whether so many groups more might cost one of those that are there."""
        with self._runtime.unit_of_work.reading() as uow:
            found = uow.checkpoints.state_counts(plan.plan_id)
        with_them = StateCounts(states=found.states + added, alike=found.alike + added)
        return not self._limits.rule_for(plan).allows(with_them)

    def left_after_adding(self, plan: Plan, added: Mapping[GroupId, str], kept: GroupId) -> int:
        """How many groups there would be once these were added, each with its state, and `kept` may
        not go."""
        now = self._runtime.clock.now()
        with self._runtime.unit_of_work.reading() as uow:
            outlines = list(uow.checkpoints.outlines(plan.plan_id))
            compared = _compared(uow, plan)
        outlines += [
            GroupOutline(
                group_id=group,
                label="",
                state_hash=state,
                labelled_by_hand=False,
                created_at=now,
                size_bytes=0,
            )
            for group, state in added.items()
        ]
        pinned = {**compared, **{group: "about to be needed" for group in (*added, kept)}}
        return len(self._explained(plan, outlines, pinned).decision.kept)

    def sweep(self, plan_id: PlanId, *, if_worth: bool = False) -> int:
        """Free what no group and no step boundary needs any more; gives back the bytes freed.

        With `if_worth`, only where it pays (`SnapshotStore.keep_only`).
        """
        with self._runtime.unit_of_work.reading() as uow:
            resources = HeldResources(uow.resources.of_plan(plan_id))
            held = uow.checkpoints.snapshots(plan_id)
            spawned = _spawned_from(uow, plan_id)
            plan = uow.plans.get(plan_id)
        if plan.action.decides:
            self._forget_messages(plan)
        freed = 0
        for resource in resources.capturable:
            refs = held.get(resource.resource_id, frozenset()) | resource.needed_snapshots()
            refs |= {ref for name, ref in spawned if name == resource.name}
            freed += self._snapshots.keep_only(resource, refs, if_worth=if_worth)
        return freed

    def _forget_messages(self, plan: Plan) -> None:
        """What its actor said and heard on lines of history that nobody can go back to."""
        with self._runtime.unit_of_work.reading() as uow:
            groups = uow.checkpoints.of_plan(plan.plan_id)
            heads = _remembered(plan, groups, uow.decisions.of_plan(plan.plan_id))
        with self._runtime.unit_of_work() as uow:
            uow.messages.keep_only(plan.plan_id, heads)
            uow.commit()

    def _explained(
        self, plan: Plan, outlines: Sequence[GroupOutline], pinned: Mapping[GroupId, str]
    ) -> Explained:
        rule = self._limits.rule_for(plan)
        decision = rule.decide(outlines, pinned=pinned, now=self._runtime.clock.now())
        return Explained(groups=tuple(outlines), decision=decision)


def pins(plan: Plan) -> Mapping[GroupId, str]:
    """What an unfinished rollback needs, whatever the limits say."""
    pinned: dict[GroupId, str] = {}
    if plan.rollback_target is not None:
        pinned[plan.rollback_target] = "an unfinished rollback leads to it"
    if plan.safety_group is not None:
        pinned[plan.safety_group] = "an unfinished rollback is undone with it"
    return pinned


def _remembered(
    plan: Plan, groups: Sequence[CheckpointGroup], decisions: Sequence[Decision]
) -> frozenset[str]:
    """The heads of everything that the plan, or a rollback of it, can still come to."""
    states = [plan.actor_state, *(group.actor_state for group in groups)]
    # Going back to a group brings its decision back to life, still to be carried out.
    named = {group.decision_id for group in groups}
    for decision in decisions:
        if not decision.superseded or decision.decision_id in named:
            states.append(decision.context.actor_state or {})
            states.append(decision.decided.state if decision.decided else {})
    return frozenset(state[HEAD] for state in states if state.get(HEAD))


def _standing(uow: UnitOfWork, plan: Plan) -> Mapping[GroupId, str]:
    if plan.head is None:
        return {}
    return {uow.checkpoints.holding(plan.head).group_id: "the plan stands on it"}


def _spawned_from(uow: UnitOfWork, plan_id: PlanId) -> Set[tuple[str, str]]:
    """By resource, the snapshots that children were branched from whose merges may be taken back:
    those of a spawn that is not over, or into the middle of which a group leads back.
    """
    children = [c for c in uow.subplans.of_parent(plan_id) if c.counts]
    if not children:
        return frozenset()
    done = uow.plans.get(plan_id).last_completed_step
    decisions = uow.decisions.of_plan(plan_id)
    open_ = {d.decision_id for d in decisions if d.step_index is not None and d.step_index > done}
    groups = uow.checkpoints.of_plan(plan_id)
    open_ |= {group.decision_id for group in groups if group.decision_id is not None}
    return {
        (resource.name, ref)
        for child in children
        if child.decision_id in open_
        for resource in uow.resources.of_plan(child.plan_id)
        for ref in (resource.branched_at, resource.origin)
        if ref is not None
    }


def _compared(uow: UnitOfWork, plan: Plan) -> Mapping[GroupId, str]:
    return {
        item.safety_group: "a correction is compared with it"
        for item in uow.corrections.of_plan(plan.plan_id)
        if item.safety_group is not None and item.status is CorrectionStatus.DONE
    }
