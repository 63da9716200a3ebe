"""What is done once the machine was started anew: sandboxes are compared with their snapshots.

A power cut loses what the kernel had not written out yet, and leaves sizes and times as they were.
What steps have written is not synced; what snapshots hold of it is (ADR 0065).
"""

from collections.abc import Sequence

from cleveragents.application.ports.runtime import (
    EventSink,
    Sandboxes,
    SnapshotStore,
    UnitOfWorkFactory,
)
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason
from cleveragents.domain.errors import PlanError
from cleveragents.domain.events import Recovered
from cleveragents.domain.ids import GroupId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.resource import PlanResource


class AfterRestart:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        checkpoints: CheckpointService,
        workplace: tuple[Sandboxes, SnapshotStore],
        events: EventSink,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._checkpoints = checkpoints
        self._sandboxes, self._snapshots = workplace
        self._events = events

    def mend(self, plan: Plan) -> Plan:
        """Make the sandboxes what the plan's last step has left, if they are not. The caller holds
        the plan's lock. Killed anywhere, it is done again: until its end they are in doubt."""
        is_applied = plan.phase is Phase.APPLY and plan.state is State.PROCESSING
        if plan.is_final or is_applied:  # an apply goes by what it has stored
            return plan
        doubtful = self._doubtful(plan)
        if not doubtful:
            return plan
        for resource in doubtful:
            self._sandboxes.check(resource)
        broken = [r.name for r in doubtful if not self._sandboxes.secure(r)]
        if self._checkpoints.stands_mid_step(plan):
            if broken:
                self._restore(plan)
            return plan  # whatever the step has left is undone before anything else is done
        found = self.look(plan)
        if found is None or found.moved or broken:
            plan = self._bring_back(plan, found)
        self._believe(doubtful)
        return plan

    def secured(self, plan: Plan) -> bool:
        """Whether sandboxes are in doubt; nothing that git would believe is broken in them then."""
        doubtful = self._doubtful(plan)
        for resource in doubtful:
            self._sandboxes.check(resource)
            self._sandboxes.secure(resource)
        return bool(doubtful)

    def look(self, plan: Plan) -> Capture | None:
        """As they are now; None if sandboxes in doubt cannot even be read."""
        try:
            return self._checkpoints.capture(plan.plan_id)
        except PlanError:
            if not self._doubtful(plan):
                raise
            return None

    def settled(self, plan: Plan) -> None:
        """The sandboxes were compared with the last step boundary, and are that."""
        self._believe(self._doubtful(plan))

    def _doubtful(self, plan: Plan) -> Sequence[PlanResource]:
        resources = self._checkpoints.resources(plan.plan_id)
        return [resource for resource in resources if self._snapshots.is_doubtful(resource)]

    def _believe(self, resources: Sequence[PlanResource]) -> None:
        for resource in resources:
            self._snapshots.believe(resource)

    def _bring_back(self, plan: Plan, found: Capture | None) -> Plan:
        wants_groups = plan.action.rollback_policy.enabled
        kept: GroupId | None = None
        if found is not None and wants_groups:
            moment = self._moment(plan, CheckpointReason.BEFORE_ROLLBACK, "found after a restart")
            plan, group = self._checkpoints.record(plan, moment, found=found)
            kept = group.group_id
        changed = self._restore(plan)
        if wants_groups:
            label = "as it was before the restart"
            moment = self._moment(plan, CheckpointReason.FILES_RESTORED, label, undo=kept)
            plan, _ = self._checkpoints.record(plan, moment)
        self._tell(changed, kept)
        return plan

    def _restore(self, plan: Plan) -> int:
        """To the last step boundary; gives the number of paths that were not as they are there."""
        changed = 0
        for resource in self._checkpoints.resources(plan.plan_id):
            restored = self._snapshots.restore(resource, resource.boundary or "")
            changed += len(restored.changes)
            with self._unit_of_work() as uow:
                uow.resources.save(resource.at_boundary(restored.snapshot.ref))
                uow.commit()
        return changed

    def _moment(
        self, plan: Plan, reason: CheckpointReason, label: str, undo: GroupId | None = None
    ) -> CheckpointMoment:
        with self._unit_of_work.reading() as uow:
            head = uow.checkpoints.holding(plan.head) if plan.head else None
        return CheckpointMoment(
            reason=reason,
            source="restart",
            label=label,
            decision_id=head.decision_id if head else None,
            step_index=plan.last_completed_step + 1,
            # What was found is no state that the plan goes on from.
            mid_step=reason is CheckpointReason.BEFORE_ROLLBACK,
            undo_group=undo,
        )

    def _tell(self, changed: int, kept: GroupId | None) -> None:
        what = "1 path" if changed == 1 else f"{changed} paths"
        message = (
            "the machine was started anew, and the sandboxes were not as their last checkpoint: "
            f"{what} brought back"
        )
        self._events.emit(Recovered(message=message))
        if kept is not None:
            self._events.emit(Recovered(message=f"what was found there is kept in {kept}"))
