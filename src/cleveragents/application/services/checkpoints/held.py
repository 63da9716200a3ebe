"""A plan that is worked on, with its resources and children: read once, and passed on from here.

Whoever works on a plan holds its lock, so that nobody else changes what is on record of it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource, SandboxStatus
from cleveragents.domain.subplan import ChildPlan

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork


class HeldResources:
    """Those of one plan as they are on record: what is stored of them is put here too, afterwards.

    `last_capture` is what the sandboxes held when they were last looked at. It is gone as soon as
    something runs that could have written there.
    """

    def __init__(self, resources: Iterable[PlanResource]) -> None:
        self._resources = {resource.resource_id: resource for resource in resources}
        self.last_capture: Capture | None = None

    @property
    def every(self) -> Sequence[PlanResource]:
        return tuple(self._resources.values())

    @property
    def sandboxes(self) -> Sequence[PlanResource]:
        """Those that have a sandbox."""
        return [r for r in self._resources.values() if r.status is SandboxStatus.READY]

    @property
    def capturable(self) -> Sequence[PlanResource]:
        """Those that have a sandbox and may be captured."""
        return [resource for resource in self.sandboxes if resource.checkpointable]

    @property
    def all_capturable(self) -> bool:
        return all(resource.checkpointable for resource in self.sandboxes)

    @property
    def in_place(self) -> bool:
        """Whether it is the user's own tree that is worked on."""
        return any(resource.in_place for resource in self._resources.values())

    def put(self, stored: Iterable[PlanResource]) -> None:
        self._resources |= {resource.resource_id: resource for resource in stored}

    def something_runs(self) -> None:
        """What was captured is not known to be there any more."""
        self.last_capture = None


class HeldPlan(Struct, frozen=True, kw_only=True):
    """`open_below` are the plans below it, on every level, that are not over."""

    plan: Plan
    resources: HeldResources
    open_below: Sequence[Plan] = ()

    @classmethod
    def of(cls, uow: "UnitOfWork", plan_id: PlanId) -> "HeldPlan":
        below = [uow.plans.get(child.plan_id) for child in descendants(uow, plan_id)]
        return cls(
            plan=uow.plans.get(plan_id),
            resources=HeldResources(uow.resources.of_plan(plan_id)),
            open_below=[plan for plan in below if not plan.is_final],
        )


def descendants(
    uow: "UnitOfWork", plan_id: PlanId, *, counting: bool = False
) -> Sequence[ChildPlan]:
    """All children of a plan on every level, parents before their children; with `counting` only
    those that still count, with all above them."""
    found: list[ChildPlan] = []
    for child in uow.subplans.of_parent(plan_id):
        if child.counts or not counting:
            found += [child, *descendants(uow, child.plan_id, counting=counting)]
    return found
