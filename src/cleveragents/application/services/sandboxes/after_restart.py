"""What is done once the machine was started anew: sandboxes are compared with their snapshots.

A power cut loses what the kernel had not written out yet, and leaves sizes and times as they were.
What steps have written is not synced; what snapshots hold of it is (ADR 0065).
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.plan_events import tell_recovered
from cleveragents.application.ports.runtime import EventSink, Workspace
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    stands_mid_step,
)
from cleveragents.application.services.checkpoints.held import HeldPlan, HeldResources
from cleveragents.application.services.execute.step_boundary import StepBoundary
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason
from cleveragents.domain.errors import PlanError
from cleveragents.domain.ids import GroupId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.resource import PlanResource


class AfterRestart(Struct, frozen=True):
    _checkpoints: CheckpointService
    _workspace: Workspace
    _boundary: StepBoundary
    _events: EventSink

    def mend(self, held: HeldPlan) -> HeldPlan:
        """Make the sandboxes what the plan's last step has left, if they are not. The caller holds
        the plan's lock. Killed anywhere, it is done again: until its end they are in doubt."""
        plan, resources = held.plan, held.resources
        is_applied = plan.phase is Phase.APPLY and plan.state is State.PROCESSING
        if plan.is_final or is_applied:  # an apply goes by what it has stored
            return held
        doubtful = self._doubtful(resources)
        if not doubtful:
            return held
        if resources.in_place:  # the tree is the truth: what it has lost is told as a change of it
            self._believe(doubtful)
            return held
        for resource in doubtful:
            self._workspace.sandboxes.check(resource)
        broken = [r.name for r in doubtful if not self._workspace.sandboxes.secure(r)]
        if stands_mid_step(plan, resources, self._checkpoints.head_of(plan)):
            if broken:
                self._boundary.return_to(resources)
            return held  # whatever the step has left is undone before anything else is done
        found = self.look(resources)
        if found is None or found.moved or broken:
            held = replace(held, plan=self._bring_back(plan, resources, found))
        self._believe(doubtful)
        resources.something_runs()
        return held

    def secured(self, resources: HeldResources) -> bool:
        """Whether sandboxes are in doubt; nothing that git would believe is broken in them then."""
        doubtful = self._doubtful(resources)
        for resource in doubtful:
            self._workspace.sandboxes.check(resource)
            self._workspace.sandboxes.secure(resource)
        return bool(doubtful)

    def doubts(self, resources: HeldResources) -> bool:
        """Whether what sandboxes hold may be what nobody has written."""
        return bool(self._doubtful(resources))

    def look(self, resources: HeldResources) -> Capture | None:
        """As they are now; None if sandboxes in doubt cannot even be read."""
        try:
            return self._checkpoints.capture(resources)
        except PlanError:
            if not self._doubtful(resources):
                raise
            return None

    def settled(self, resources: HeldResources) -> None:
        """The sandboxes were compared with the last step boundary, and are that."""
        self._believe(self._doubtful(resources))

    def _doubtful(self, resources: HeldResources) -> Sequence[PlanResource]:
        return [r for r in resources.capturable if self._workspace.snapshots.is_doubtful(r)]

    def _believe(self, resources: Sequence[PlanResource]) -> None:
        for resource in resources:
            self._workspace.snapshots.believe(resource)

    def _bring_back(self, plan: Plan, resources: HeldResources, found: Capture | None) -> Plan:
        wants_groups = plan.action.rollback_policy.enabled
        kept: GroupId | None = None
        if found is not None and wants_groups:
            moment = self._moment(plan, CheckpointReason.BEFORE_ROLLBACK, "found after a restart")
            plan, group = self._checkpoints.record(plan, resources, moment, found=found)
            kept = group.group_id
        changed = self._boundary.return_to(resources).changed
        if wants_groups:
            label = "as it was before the restart"
            moment = self._moment(plan, CheckpointReason.FILES_RESTORED, label, undo=kept)
            plan, _ = self._checkpoints.record(plan, resources, moment)
        self._tell(changed, kept)
        return plan

    def _moment(
        self, plan: Plan, reason: CheckpointReason, label: str, undo: GroupId | None = None
    ) -> CheckpointMoment:
        head = self._checkpoints.head_of(plan)
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
        kept_in = () if kept is None else (f"what was found there is kept in {kept}",)
        tell_recovered(self._events, message, *kept_in)
