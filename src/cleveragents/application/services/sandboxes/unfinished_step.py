"""A step that did not come to its end: what it left in the sandboxes is kept, and undone."""

from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.plan_events import tell_recovered
from cleveragents.application.ports.runtime import EventSink, Sandboxes
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    stands_mid_step,
)
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.execute.step_boundary import StepBoundary
from cleveragents.application.services.sandboxes.after_restart import AfterRestart
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointMoment, CheckpointReason
from cleveragents.domain.plan import Plan

if TYPE_CHECKING:  # in place only
    from cleveragents.application.services.execute.others import OthersSteps


class UnfinishedStep(Struct, frozen=True):
    _checkpoints: CheckpointService
    _sandboxes: Sandboxes
    _boundary: StepBoundary
    _restarts: AfterRestart
    _others: "OthersSteps"
    _events: EventSink

    def is_certain(self, resources: HeldResources) -> bool:
        """Whether what was left is what somebody wrote: after a power cut it may be anything."""
        for resource in resources.capturable:
            self._sandboxes.check(resource)
        return not self._restarts.doubts(resources)

    def undo(self, plan: Plan, resources: HeldResources) -> Plan:
        """Make the sandboxes what they were at the last step boundary, if they are not. In place
        nothing is undone: whatever is there becomes a step."""
        for resource in resources.capturable:
            self._sandboxes.check(resource)
        if resources.in_place:
            return self._others.note(plan, resources)
        found = self._restarts.look(resources)
        if found is not None and not found.moved:
            self._restarts.settled(resources)
            return plan
        if found is None:
            tell_recovered(
                self._events, "what is undone is not kept: a restart has left it unreadable"
            )
        else:
            plan = self._keep(plan, resources, found)
        done = self._boundary.return_to(resources)
        self._restarts.settled(resources)
        what = "1 change" if done.changed == 1 else f"{done.changed} changes"
        tell_recovered(self._events, f"undid {what} of an unfinished step", *done.notes)
        return plan

    def _keep(self, plan: Plan, resources: HeldResources, found: Capture) -> Plan:
        """What is about to be undone, unless the group that the plan stands on has it already, or
        the plan says that it wants no groups at all."""
        head = self._checkpoints.head_of(plan)
        if head is not None and _holds_files(head, found):
            return plan
        if not plan.action.rollback_policy.enabled:
            tell_recovered(
                self._events, "what is undone is not kept: rollback_policy.enabled is false"
            )
            return plan
        moment = CheckpointMoment(
            reason=CheckpointReason.BEFORE_ROLLBACK,
            source="rollback",
            label="before resume",
            decision_id=head.decision_id if head else None,
            step_index=plan.last_completed_step + 1,
            mid_step=stands_mid_step(plan, resources, head),
        )
        plan, kept = self._checkpoints.record(plan, resources, moment, found=found)
        tell_recovered(self._events, f"what is undone is kept in {kept.group_id}")
        return plan


def _holds_files(group: CheckpointGroup, found: Capture) -> bool:
    hashes = {key: snapshot.state_hash for key, snapshot in found.snapshots.items()}
    return hashes == {state.resource_id: state.state_hash for state in group.resource_states}
