"""Leases as tests need them that are about something else."""

from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.database.fence import HeldLeases


class EveryLease(HeldLeases):
    """Those of a process that holds every plan from its beginning on."""

    def epoch(self, plan_id: PlanId) -> int:
        del plan_id
        return 0
