"""What people ask about a plan's children; nothing here changes anything."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.services.checkpoints.held import descendants
from cleveragents.domain.errors import NoConflictError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.subplan import ChildPlan, MergeOutcome

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork


class ChildStatus(Struct, frozen=True, kw_only=True):
    """One child with its own children."""

    child: ChildPlan
    plan: Plan
    children: tuple["ChildStatus", ...]

    @property
    def steps_done(self) -> int:
        return self.plan.last_completed_step + 1


def children_of_plan(uow: "UnitOfWork", plan_id: PlanId) -> tuple[ChildStatus, ...]:
    """All there ever were, those that no longer count too, in the order of their spawning."""
    return tuple(
        ChildStatus(
            child=child,
            plan=uow.plans.get(child.plan_id),
            children=children_of_plan(uow, child.plan_id),
        )
        for child in uow.subplans.of_parent(plan_id)
    )


def counting(children: Sequence[ChildStatus]) -> Iterator[ChildStatus]:
    """Those on every level that still count."""
    for item in children:
        if item.child.counts:
            yield item
            yield from counting(item.children)


def conflicting(uow: "UnitOfWork", plan: Plan) -> Sequence[ChildPlan]:
    """The plan's own children whose results wait for a decision. Raises NoConflictError."""
    found = waiting_for_decision(uow, plan.plan_id)
    if not found:
        children = [child for child in uow.subplans.of_parent(plan.plan_id) if child.counts]
        below = [child.plan_id for child in children if _any_below(uow, child.plan_id)]
        raise NoConflictError(plan.plan_id, below)
    return found


def waiting_for_decision(uow: "UnitOfWork", plan_id: PlanId) -> Sequence[ChildPlan]:
    children = [child for child in uow.subplans.of_parent(plan_id) if child.counts]
    return [child for child in children if child.outcome is MergeOutcome.CONFLICT]


def _any_below(uow: "UnitOfWork", plan_id: PlanId) -> bool:
    below = descendants(uow, plan_id, counting=True)
    return any(child.outcome is MergeOutcome.CONFLICT for child in below)


def with_children(plans: Sequence[Plan]) -> Sequence[Plan]:
    """The same plans with every child after its parent, older ones first."""
    below: dict[PlanId | None, list[Plan]] = {}
    for plan in plans:
        below.setdefault(plan.child_of.parent_id if plan.child_of else None, []).append(plan)

    def ordered(parent: PlanId | None) -> Iterator[Plan]:
        found = below.get(parent, [])
        for plan in found if parent is None else reversed(found):
            yield plan
            yield from ordered(plan.plan_id)

    return list(ordered(None))
