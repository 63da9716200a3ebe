"""What a rollback changes in the record: one transaction, no row is deleted.

What: a new timeline begins at the group, and decisions, calls, groups and children are marked anew.
In which order: what counts is worked out first, from the rows as they are; then the fork, the marks
and the plan are written. A dry run takes the first half (`look_ahead`).
Why: marks say exactly what counts on the line that leads here, and nothing else. Set as a whole,
they bring back to life what an earlier rollback had left behind, and can be set again.
What is not guaranteed: anything about files. The caller has restored them, and commits.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.application.services.checkpoints.held import descendants
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.correction import superseded_decisions
from cleveragents.domain.decision import Decision, Fork, ToolCall, is_live, lineage
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.subplan import ChildPlan


class RewindResult(Struct, frozen=True, kw_only=True):
    """The plan as it stands now, and what no longer counts that counted before."""

    plan: Plan
    decisions_discarded: int
    undone: tuple[ToolCall, ...]
    children_invalidated: int = 0
    groups_left: int = 0


class SupersessionPreview(Struct, frozen=True, kw_only=True):
    """What would no longer count after a rollback; children as they are and as they would be."""

    fork: Fork
    reach: Mapping[int, int | None]
    decisions: tuple[Decision, ...]
    calls: tuple[ToolCall, ...]
    children: tuple[tuple[ChildPlan, ChildPlan], ...]
    children_invalidated: int

    @property
    def discarded(self) -> int:
        return sum(1 for decision in self.decisions if not decision.superseded)

    @property
    def undone(self) -> tuple[ToolCall, ...]:
        return tuple(call for call in self.calls if not call.undone)


def look_ahead(uow: UnitOfWork, plan: Plan, target: CheckpointGroup) -> SupersessionPreview:
    """What `rewind` would do; nothing is changed.

    What counts is decided by lineage, not by time, so that going back to a group that an earlier
    rollback left behind brings its decisions back to life.
    """
    forks = list(uow.timelines.of_plan(plan.plan_id))
    fork = Fork(timeline=len(forks) + 1, start=target.position)
    return _superseded_from(uow, plan.plan_id, fork, lineage(fork.timeline, [*forks, fork]))


def rewind(uow: UnitOfWork, plan: Plan, target: CheckpointGroup) -> RewindResult:
    """Let history go on from `target` on a timeline of its own."""
    outlook = look_ahead(uow, plan, target)
    uow.timelines.add(plan.plan_id, outlook.fork)
    _mark(uow, plan.plan_id, outlook)
    uow.plans.save(plan.restore(target, outlook.fork.timeline))
    return _rewound(uow, plan.plan_id, outlook)


def recompute_superseded(uow: UnitOfWork, plan: Plan) -> RewindResult:
    """Mark anew what counts where the plan stands now: a correction was just recorded."""
    forks = uow.timelines.of_plan(plan.plan_id)
    here = Fork(timeline=plan.timeline, start=plan.here)
    outlook = _superseded_from(uow, plan.plan_id, here, lineage(plan.timeline, forks))
    _mark(uow, plan.plan_id, outlook)
    return _rewound(uow, plan.plan_id, outlook)


def _superseded_from(
    uow: UnitOfWork, plan_id: PlanId, fork: Fork, reach: Mapping[int, int | None]
) -> SupersessionPreview:
    decisions, calls = uow.decisions.of_plan(plan_id), uow.tool_calls.of_plan(plan_id)
    gone = superseded_decisions(decisions, uow.corrections.supersessions(plan_id), reach)
    children = tuple(
        (child, child.on_line(reach, replaced=child.decision_id in gone))
        for child in uow.subplans.of_parent(plan_id)
    )
    return SupersessionPreview(
        fork=fork,
        reach=reach,
        decisions=tuple(d for d in decisions if d.decision_id in gone),
        calls=tuple(c for c in calls if c.decision_id in gone or not is_live(c.position, reach)),
        children=children,
        children_invalidated=_invalidated(uow, children),
    )


def _mark(uow: UnitOfWork, plan_id: PlanId, outlook: SupersessionPreview) -> None:
    uow.decisions.mark_superseded(plan_id, [d.decision_id for d in outlook.decisions])
    uow.tool_calls.mark_undone(plan_id, [call.call_id for call in outlook.calls])
    groups = uow.checkpoints.positions(plan_id)
    gone = [group_id for group_id, where in groups.items() if not is_live(where, outlook.reach)]
    uow.checkpoints.mark_superseded(plan_id, gone)
    for child, seen in outlook.children:
        if seen != child:
            uow.subplans.save(seen)


def _rewound(uow: UnitOfWork, plan_id: PlanId, outlook: SupersessionPreview) -> RewindResult:
    return RewindResult(
        # Read again: which of the corrected steps count may have changed too.
        plan=uow.plans.get(plan_id),
        decisions_discarded=outlook.discarded,
        undone=outlook.undone,
        children_invalidated=outlook.children_invalidated,
        groups_left=uow.checkpoints.count(plan_id),
    )


def _invalidated(uow: UnitOfWork, children: Iterable[tuple[ChildPlan, ChildPlan]]) -> int:
    """How many no longer count that did, with all their own children."""
    gone = [child for child, seen in children if child.counts and not seen.counts]
    return len(gone) + sum(len(descendants(uow, child.plan_id, counting=True)) for child in gone)
