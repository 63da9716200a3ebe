"""Owns taking a step's half-done work back before the step is tried again."""

from cleveragents.application.ports import SnapshotStore, UnitOfWorkFactory
from cleveragents.domain.ids import PlanId
from cleveragents.domain.sandbox import SandboxStatus


class StepBoundary:
    def __init__(self, unit_of_work: UnitOfWorkFactory, snapshots: SnapshotStore) -> None:
        self._unit_of_work = unit_of_work
        self._snapshots = snapshots

    def return_to(self, plan_id: PlanId) -> None:
        """Every sandbox as it was when the step began; what the step left there is not kept."""
        with self._unit_of_work.reading() as uow:
            found = uow.resources.of_plan(plan_id)
        resources = [r for r in found if r.status is SandboxStatus.READY and r.checkpointable]
        restored = [(r, self._snapshots.restore(r, r.boundary or "")) for r in resources]
        with self._unit_of_work() as uow:
            for resource, result in restored:
                uow.resources.save(resource.at_boundary(result.snapshot.ref))
            uow.commit()
