"""Owns what a rollback changes in the record: one transaction, no row is deleted."""

from collections.abc import Mapping
from dataclasses import dataclass

from cleveragents.application.ports import UnitOfWork
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.decision import Fork, ToolCall, is_live, lineage
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """The plan as it stands now, and what no longer counts that counted before."""

    plan: Plan
    decisions_discarded: int
    undone: tuple[ToolCall, ...]
    children_invalidated: int = 0


def rewind(uow: UnitOfWork, plan: Plan, target: CheckpointGroup) -> Rewound:
    """Let history go on from `target` on a timeline of its own.

    What counts is decided by lineage, not by time, so that going back to a group that an earlier
    rollback left behind brings its decisions back to life.
    """
    forks = list(uow.timelines.of_plan(plan.plan_id))
    fork = Fork(timeline=len(forks) + 1, start=target.position)
    uow.timelines.add(plan.plan_id, fork)
    reach = lineage(fork.timeline, [*forks, fork])
    discarded = _supersede_decisions(uow, plan.plan_id, reach)
    undone = _undo_tool_calls(uow, plan.plan_id, reach)
    _supersede_groups(uow, plan.plan_id, reach)
    invalidated = _invalidate_children(uow, plan.plan_id, reach)
    plan = plan.restore(target, fork.timeline)
    uow.plans.save(plan)
    return Rewound(
        plan=plan,
        decisions_discarded=discarded,
        undone=undone,
        children_invalidated=invalidated,
    )


def _supersede_decisions(uow: UnitOfWork, plan_id: PlanId, reach: Mapping[int, int | None]) -> int:
    decisions = uow.decisions.of_plan(plan_id)
    gone = [d for d in decisions if not is_live(d.position, reach)]
    uow.decisions.mark_superseded(plan_id, [d.decision_id for d in gone])
    return sum(1 for d in gone if not d.superseded)


def _undo_tool_calls(
    uow: UnitOfWork, plan_id: PlanId, reach: Mapping[int, int | None]
) -> tuple[ToolCall, ...]:
    gone = [call for call in uow.tool_calls.of_plan(plan_id) if not is_live(call.position, reach)]
    uow.tool_calls.mark_undone(plan_id, [call.call_id for call in gone])
    return tuple(call for call in gone if not call.undone)


def _supersede_groups(uow: UnitOfWork, plan_id: PlanId, reach: Mapping[int, int | None]) -> None:
    groups = uow.checkpoints.of_plan(plan_id)
    gone = [group.group_id for group in groups if not is_live(group.position, reach)]
    uow.checkpoints.mark_superseded(plan_id, gone)


def _invalidate_children(uow: UnitOfWork, plan_id: PlanId, reach: Mapping[int, int | None]) -> int:
    """How many no longer count that did, with all their own children."""
    number = 0
    for child in uow.subplans.of_parent(plan_id):
        seen = child.on_line(reach)
        if seen != child:
            uow.subplans.save(seen)
        if child.counts and not seen.counts:
            number += 1 + _counting_below(uow, child.plan_id)
    return number


def _counting_below(uow: UnitOfWork, plan_id: PlanId) -> int:
    children = [child for child in uow.subplans.of_parent(plan_id) if child.counts]
    return len(children) + sum(_counting_below(uow, child.plan_id) for child in children)
