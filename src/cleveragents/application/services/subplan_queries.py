"""Owns what people ask about a plan's children; nothing here changes anything."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cleveragents.application.ports import UnitOfWork
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.subplan import ChildPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStatus:
    """One child with its own children."""

    child: ChildPlan
    plan: Plan
    children: tuple["ChildStatus", ...]

    @property
    def steps_done(self) -> int:
        return self.plan.last_completed_step + 1


def children_of_plan(uow: UnitOfWork, plan_id: PlanId) -> tuple[ChildStatus, ...]:
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
