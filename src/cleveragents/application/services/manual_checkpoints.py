"""Owns the checkpoints that people make and delete by hand, under the plan's lock."""

from cleveragents.application.ports import PlanLocks, UnitOfWorkFactory
from cleveragents.application.services.checkpoint_service import CheckpointService
from cleveragents.application.services.rollback_service import RollbackService
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.ids import PlanId


class ManualCheckpoints:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        checkpoints: CheckpointService,
        rollbacks: RollbackService,
        locks: PlanLocks,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._checkpoints = checkpoints
        self._rollbacks = rollbacks
        self._locks = locks

    def create(self, plan_id: PlanId, label: str) -> CheckpointGroup:
        with self._locks.hold(plan_id, "checkpoint create"):
            with self._unit_of_work.reading() as uow:
                plan = uow.plans.get(plan_id)
            return self._checkpoints.create(self._rollbacks.recover(plan), label)

    def delete(self, plan_id: PlanId, wanted: str) -> tuple[CheckpointGroup, int]:
        """The group that went, and the bytes that were freed."""
        with self._locks.hold(plan_id, "checkpoint delete"):
            with self._unit_of_work.reading() as uow:
                plan = uow.plans.get(plan_id)
            group = self._checkpoints.get_checkpoint(plan_id, wanted)
            return group, self._checkpoints.delete(plan, group)
