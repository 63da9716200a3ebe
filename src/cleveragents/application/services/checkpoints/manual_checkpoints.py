"""The checkpoints that people make, prune and delete by hand, under the plan's lock."""

from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.checkpoints.held import HeldPlan
from cleveragents.application.services.checkpoints.pruning import Explained
from cleveragents.application.services.sandboxes.care import SandboxCare
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.errors import UsageError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan

if TYPE_CHECKING:
    from cleveragents.application.services.rollback.rollback_service import RollbackService


class ManualCheckpoints(Struct, frozen=True):
    _runtime: Runtime
    _checkpoints: CheckpointService
    _care: SandboxCare
    _rollbacks: "RollbackService"

    def create(self, plan_id: PlanId, label: str) -> CheckpointGroup:
        """Raises UsageError for a label that says nothing, and LabelTakenError."""
        name = label.strip()
        if not name:
            hint = "give it a name to go back to it by, for example 'before the migration'"
            raise UsageError("the label of a checkpoint must not be empty", hint)
        with self._runtime.locks.hold(plan_id, "checkpoint create"):
            return self._checkpoints.create(self._taken_up(plan_id), name)

    def explain_retention(self, plan_id: PlanId) -> Explained:
        """What `prune` would do now; nothing is changed."""
        return self._checkpoints.explain_retention(self._load(plan_id))

    def prune(self, plan_id: PlanId) -> tuple[Explained, int]:
        """What the rule said and was done, and the bytes that were freed."""
        with self._runtime.locks.hold(plan_id, "checkpoint prune"):
            return self._checkpoints.prune(self._taken_up(plan_id).plan)

    def delete(self, plan_id: PlanId, wanted: str) -> tuple[CheckpointGroup, int]:
        """The group that went, and the bytes that were freed."""
        with self._runtime.locks.hold(plan_id, "checkpoint delete"):
            plan = self._load(plan_id)
            group = self._checkpoints.get_checkpoint(plan_id, wanted)
            return group, self._checkpoints.delete(plan, group)

    def _taken_up(self, plan_id: PlanId) -> HeldPlan:
        """As whatever is done with a plan begins; the way back is loaded if one waits for it."""
        with self._runtime.unit_of_work.reading() as uow:
            held = HeldPlan.of(uow, plan_id)
        if held.plan.is_final or held.plan.rollback_target is not None:
            return self._rollbacks.recover(held)
        return self._care.mended(held)

    def _load(self, plan_id: PlanId) -> Plan:
        with self._runtime.unit_of_work.reading() as uow:
            return uow.plans.get(plan_id)
