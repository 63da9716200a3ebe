"""Ending a plan for good and removing all that it holds, in one go."""

from collections.abc import Callable

from msgspec import Struct

from cleveragents.application.ports.locks import PlanLocks
from cleveragents.application.services.plans.plan_service import PlanService
from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
from cleveragents.domain.errors import DeclinedError, PlanStateError
from cleveragents.domain.holdings import PlanHoldings
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan

_REASON = "discarded"


class Discarded(Struct, frozen=True, kw_only=True):
    """`held` is what it had; the plan is over now, and has nothing more."""

    plan: Plan
    held: PlanHoldings


class Discarding:
    def __init__(self, cleanup: SandboxCleanup, plans: PlanService, locks: PlanLocks) -> None:
        self._cleanup = cleanup
        self._plans = plans
        self._locks = locks

    def discard(self, plan_id: PlanId, confirm: Callable[[PlanHoldings], bool]) -> Discarded:
        """Whatever state it is in, and whatever its sandboxes hold. Somebody who executes it is
        stopped first, as Ctrl-C would; raises PlanLockedError for anybody else.

        First the record says that the plan is over, then the files go: a kill in between leaves a
        cancelled plan, of which the next discarding removes the rest.
        """
        held = self._cleanup.holdings(plan_id)
        plan = held.plan
        _refuse_a_part(plan)
        if held.owner is None:
            plan.refuse_if_applying()
        if not confirm(held):
            raise DeclinedError("the discarding")
        if not plan.is_final:
            plan = self._plans.cancel(plan_id, _REASON).plan
        with self._locks.hold(plan_id, "discard"):
            self._cleanup.clear(plan_id)
        return Discarded(plan=plan, held=held)


def _refuse_a_part(plan: Plan) -> None:
    if plan.child_of is not None:
        root = plan.child_of.root_id
        raise PlanStateError(
            f"plan {plan.plan_id} is a part of plan {root}", f"agents plan discard {root}"
        )
