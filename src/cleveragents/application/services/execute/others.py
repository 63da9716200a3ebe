"""What others have changed in a tree that is worked on in place: a step of its own on the timeline.

The tree is the truth, and our records are not: whatever it holds that no group has becomes a step
that nobody of ours has done, so that it has a row, and a state to go back to (ADR 0100).
"""

from msgspec.structs import replace

from cleveragents.application.plan_events import tell_recovered
from cleveragents.application.ports.runtime import (
    Runtime,
    SnapshotStore,
)
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.checkpoints.recorded_with import CommitExtras
from cleveragents.application.services.checkpoints.recording import PastStep
from cleveragents.application.services.execute.deciding import Deciding
from cleveragents.application.services.execute.run_state import RunState
from cleveragents.domain.action import Step, step_number
from cleveragents.domain.actor_protocol import Memory, Proposal
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason
from cleveragents.domain.decision import Decision
from cleveragents.domain.ids import GroupId
from cleveragents.domain.in_place import OTHERS, left_name, others_name
from cleveragents.domain.plan import Plan
from cleveragents.domain.timeline import step_name


class OthersSteps:
    def __init__(
        self,
        runtime: Runtime,
        checkpoints: CheckpointService,
        snapshots: SnapshotStore,
    ) -> None:
        self._runtime = runtime
        self._checkpoints = checkpoints
        self._snapshots = snapshots
        self._deciding = Deciding(runtime)

    def note(self, plan: Plan, resources: HeldResources, needs: tuple[GroupId, ...] = ()) -> Plan:
        """Nothing happens if the tree is as the last step left it. One transaction, as for every
        step; the caller holds the plan's lock, and `needs` these groups after it."""
        if plan.head is None:
            return plan  # the first group is still to come, and takes all of it
        found = self._since_boundary(self._checkpoints.capture(resources))
        if not found.moved:
            return plan
        with self._runtime.unit_of_work.reading() as uow:
            course = RunState.of(uow, plan, resources)
        index = plan.last_completed_step + 1
        proposal = seen_in_the_tree(plan, found, course)
        step = proposal.step
        decision = self._deciding.of_step(plan, proposal, index, course)
        past = PastStep(
            plan=plan.advance(index, plan.actor_state),
            before=[_moment(CheckpointReason.DECISION, "before {number}: {name}", decision, needs)],
            after=[_moment(CheckpointReason.AFTER_STEP, "step {number}: {name}", decision, needs)],
            additions=CommitExtras(
                decision=decision,
                dependencies=tuple(course.known_to(decision, step, plan.action)),
                tool_call=self._deciding.call_of(decision, step),
                writers=course.writers,
            ),
        )
        done = self._checkpoints.record_past(plan, resources, past, found)
        tell_recovered(self._runtime.events, step.name)
        return done.plan.with_action(course.action_with(done.plan.action, decision))

    def _since_boundary(self, found: Capture) -> Capture:
        """A look may have been had before that nothing came of: what counts is since the step."""
        told = {
            r.resource_id: replace(
                found.snapshots[r.resource_id],
                changes=self._snapshots.changes_between(
                    r, r.boundary or "", found.snapshots[r.resource_id].ref
                ),
            )
            for r in found.moved
        }
        return replace(found, snapshots={**found.snapshots, **told})


def seen_in_the_tree(plan: Plan, found: Capture, course: RunState) -> Proposal:
    """The step that whatever no group has becomes; what one of ours has left is called after it."""
    paths, left_by = [change.path for change in found.changes], course.left_by(plan)
    name = others_name(paths) if left_by is None else left_name(left_by, paths)
    who = "a person, an editor, git or another program did it"
    if left_by is not None:
        who = "a step of ours may have left it, which is not undone in place"
    return Proposal(
        step=Step(name=name, tool=OTHERS, arguments={}),
        question="What has changed without a step of ours?",
        rationale=f"found in the tree; {who}",
        memory=Memory(state=plan.actor_state),
    )


def _moment(
    reason: CheckpointReason, label: str, decision: Decision, needs: tuple[GroupId, ...]
) -> CheckpointMoment:
    index = decision.step_index or 0
    return CheckpointMoment(
        reason=reason,
        source=OTHERS,
        label=label.format(number=step_number(index), name=step_name(decision)),
        decision_id=decision.decision_id,
        step_index=index,
        needs=needs,
    )
