"""Taking a step's half-done work back before the step is tried again."""

from cleveragents.application.ports.runtime import SnapshotStore, UnitOfWorkFactory
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import SandboxStatus


class StepBoundary:
    def __init__(self, unit_of_work: UnitOfWorkFactory, snapshots: SnapshotStore) -> None:
        self._unit_of_work = unit_of_work
        self._snapshots = snapshots

    def return_to(self, plan_id: PlanId) -> None:
        """Every sandbox as it was when the step began; what the step left there is not kept."""
        with self._unit_of_work.reading() as uow:
            uow.plans.refuse_overtaken(plan_id)
            found = uow.resources.of_plan(plan_id)
        ready = [resource for resource in found if resource.status is SandboxStatus.READY]
        together = all(resource.checkpointable for resource in ready)
        restored = [
            (r, self._snapshots.restore(r, r.boundary or "", together=together))
            for r in ready
            if r.checkpointable
        ]
        with self._unit_of_work() as uow:
            for resource, result in restored:
                uow.resources.save(resource.at_boundary(result.snapshot.ref))
            uow.commit()
