"""Removing a plan with all that it has left: sandboxes, snapshots, names in repositories, records.

The order is that of a kill at any moment (ADR 0080): first the record says that the plan is over,
then the files and names go, each of which may be repeated, and the record itself goes last. Until
then whatever was left is found again by what is on record.
"""

from collections.abc import Sequence

from msgspec import Struct

from cleveragents.application.ports.maintenance import PlanRecords, PlanTraces
from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.plans.plan_service import PlanService
from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
from cleveragents.domain.errors import PlanLockedError, PlanStateError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource


class PlanRemoval(Struct, frozen=True):
    _runtime: Runtime
    _cleanup: SandboxCleanup
    _plans: PlanService
    _traces: PlanTraces
    _records: PlanRecords

    def clear(self, plan: Plan, why: str) -> None:
        """All but the records. Raises PlanLockedError if somebody works on it."""
        self._end(plan, why)
        with self._runtime.locks.hold(plan.plan_id, why):
            self._clear(plan.plan_id)

    def remove(self, plan: Plan, why: str) -> None:
        """All of it."""
        self._end(plan, why)
        with self._runtime.locks.hold(plan.plan_id, why):
            self._clear(plan.plan_id)
            self._records.remove(plan.plan_id)
        self._runtime.locks.forget(plan.plan_id)

    def forget_strays(self) -> None:
        """The locks of plans that are on record no more: a kill leaves the last one's behind."""
        with self._runtime.unit_of_work.reading() as uow:
            plans = {plan.plan_id for plan in uow.plans.list()}
        for plan_id in set(self._runtime.locks.known()) - plans:
            self._runtime.locks.forget(plan_id)

    def _end(self, plan: Plan, why: str) -> None:
        """Nobody is stopped for this, and nothing removed that was not looked at."""
        plan_id = plan.plan_id
        if owner := self._runtime.locks.owner(plan_id):
            raise PlanLockedError(plan_id, owner)
        with self._runtime.unit_of_work.reading() as uow:
            now = uow.plans.get(plan_id)
        if now != plan:
            raise PlanStateError(f"plan {plan_id} has changed meanwhile", "look again")
        if not plan.is_final:
            self._plans.cancel(plan_id, f"removed by `agents {why}`")

    def _clear(self, plan_id: PlanId) -> None:
        self._cleanup.clear(plan_id)
        for resource in self._resources(plan_id):
            self._traces.remove(resource)

    def _resources(self, plan_id: PlanId) -> Sequence[PlanResource]:
        with self._runtime.unit_of_work.reading() as uow:
            return uow.resources.of_plan(plan_id)
