"""Going on: bring a plan to the last step boundary, then execute what is left.

In which order, under the plan's lock: a rollback or correction that was cut off is finished; the
sandboxes are made if there are none; else what a step left half done is kept and undone; then the
steps that are left run.
Why: a step begins at a boundary, and what is cut off may still have to move that. Sandboxes are on
disk before they are on record: until then they are made again.
What is not guaranteed: that a step which was cut off did not reach outside; it is told as doubtful.
"""

from collections.abc import Sequence

from msgspec import Struct

from cleveragents.application.ports.runtime import (
    Runtime,
    Workspace,
)
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.held import HeldPlan, HeldResources
from cleveragents.application.services.effects.effect_ledger import EffectLedger
from cleveragents.application.services.execute.plan_executor import PlanExecutor
from cleveragents.application.services.execute.run_state import RunState
from cleveragents.application.services.execute.tool_runner import EffectGate
from cleveragents.application.services.rollback.rollback_service import RollbackService
from cleveragents.application.services.rollback.undo_service import past_of
from cleveragents.application.services.sandboxes.unfinished_step import UnfinishedStep
from cleveragents.application.services.subplans.queries import conflicting, waiting_for_decision
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.conflicts import UNDECIDED, Resolution
from cleveragents.domain.effects import EffectChoice
from cleveragents.domain.errors import (
    DatabaseBusyError,
    DatabaseUnusableError,
    EffectDoneError,
    EffectUncertainError,
    InterruptedPlanError,
    InterruptedProgramError,
    PlanError,
    PlanOvertakenError,
    PlanStateError,
)
from cleveragents.domain.events import SandboxCreating
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan, PlanFailure, State
from cleveragents.domain.resource import PlanResource, SandboxStatus
from cleveragents.domain.scarcity import Resource
from cleveragents.domain.subplan import ChildPlan
from cleveragents.domain.undo import is_at_its_end

# Others have the database or the plan, or the executor has stored that the plan waits.
_NOT_A_FAILURE = (
    DatabaseBusyError,
    DatabaseUnusableError,
    PlanOvertakenError,
    EffectUncertainError,
    EffectDoneError,
)


class ResumePoint(Struct, frozen=True, kw_only=True):
    """Where a plan would go on. `next_step` is None when nothing is left to do.

    `effects`: the steps ahead that have reached outside before, and what would happen to each.
    `conflicts`: children whose results wait for a decision.
    """

    plan: Plan
    next_step: int | None
    finishes_rollback: bool
    effects: tuple[tuple[int, EffectGate], ...] = ()
    conflicts: tuple[ChildPlan, ...] = ()


class PlanResumeService(Struct, frozen=True):
    _runtime: Runtime
    _executor: PlanExecutor
    _rollbacks: RollbackService
    _unfinished: UnfinishedStep
    _ledger: EffectLedger
    _workspace: Workspace

    def run(
        self,
        plan_id: PlanId,
        choice: EffectChoice = EffectChoice.STOP,
        resolution: Resolution = UNDECIDED,
        *,
        rebuild: bool = False,
    ) -> Plan:
        """Start or resume; a plan that has done all its steps comes back as it is. With `rebuild`,
        sandboxes that are gone or unusable are made again first.

        Raises NoConflictError for a resolution where there is nothing to decide.
        """
        with self._runtime.locks.hold(plan_id, "execute"):
            held = self._rollbacks.take_up(plan_id, rebuild=rebuild)
            plan, resources = held.plan, held.resources
            plan.refuse_if_final()
            plan.refuse_if_applying()
            if resolution:
                with self._runtime.unit_of_work.reading() as uow:
                    conflicting(uow, plan)
            if plan.executed:
                return plan
            try:
                if not self._make_sandboxes(plan, resources):
                    plan = self._settle(plan, resources)
                try:
                    return self._executor.execute(plan, resources, choice, resolution)
                finally:
                    self._written(resources)
            except KeyboardInterrupt:
                doubtful = self._undo_running_step(plan_id)
                raise _interrupted(plan, doubtful) from None
            except _NOT_A_FAILURE:
                raise
            except PlanError as error:
                self._fail(plan_id, error)
                raise
            except MemoryError as error:
                # What it was needed for has been let go by now: there is enough to write this down.
                lacking = Resource.MEMORY.lacking
                self._fail(plan_id, lacking)
                raise lacking from error

    def _written(self, resources: HeldResources) -> None:
        """A sandbox is mended after a power cut, the user's own tree is not: what a run has left
        there is on the disk when it is over, git's index too, which git does not see to (ADR
        0107)."""
        if resources.in_place:
            self._workspace.sandboxes.make_durable(resources.capturable)

    def accept(self, plan_id: PlanId) -> Plan:
        """Take what is there as the result of a plan whose actor decides its steps: after a
        rollback, or if its program has failed. A plan that has done all of them comes back as it
        is."""
        with self._runtime.locks.hold(plan_id, "accept"):
            held = self._rollbacks.take_up(plan_id)
            plan, resources = held.plan, held.resources
            plan.refuse_if_final()
            plan.refuse_if_applying()
            if plan.executed:
                return plan
            if not plan.action.decides or plan.head is None:
                raise PlanStateError(
                    f"plan {plan_id} has steps that are still to be done",
                    f"agents plan execute {plan_id}",
                )
            plan = self._settle(plan, resources)
            return self._executor.accept(plan, resources)

    def accept_finished(self, plan_id: PlanId) -> None:
        """A plan that stands where it was complete once is complete again: after undo and redo
        nobody has to be asked whether there is more to do. All others stay as they are."""
        with self._runtime.locks.hold(plan_id, "accept"):
            held = self._rollbacks.take_up(plan_id)
            with self._runtime.unit_of_work.reading() as uow:
                past = past_of(uow, plan_id)
            if is_at_its_end(past):
                self._executor.accept(held.plan, held.resources)

    def recover_crashed(self, plan_id: PlanId) -> Plan:
        """Mend what a process that died has left of its work, and let the plan wait."""
        with self._runtime.locks.hold(plan_id, "settle"):
            plan = self._rollbacks.take_up(plan_id).plan
            plan.refuse_if_final()
            plan.refuse_if_applying()
            self._undo_running_step(plan_id)
            return self._load(plan_id)

    def preview(self, plan_id: PlanId, choice: EffectChoice = EffectChoice.STOP) -> ResumePoint:
        """Say where `run` would go on, and change nothing."""
        plan = self._load(plan_id)
        plan.refuse_if_final()
        if plan.rollback_target is not None:
            with self._runtime.unit_of_work.reading() as uow:
                reached = uow.checkpoints.get(plan.rollback_target).last_completed_step
            return ResumePoint(plan=plan, next_step=reached + 1, finishes_rollback=True)
        following = None if plan.executed else self._executor.next_step(plan)
        ahead = () if following is None else self._executor.effects_ahead(plan, following, choice)
        with self._runtime.unit_of_work.reading() as uow:
            waiting = waiting_for_decision(uow, plan_id)
        return ResumePoint(
            plan=plan,
            next_step=following,
            finishes_rollback=False,
            effects=tuple(ahead),
            conflicts=tuple(waiting),
        )

    def _make_sandboxes(self, plan: Plan, resources: HeldResources) -> bool:
        """Whether there was one to make; those are as they are at their first boundary then."""
        pending = [r for r in resources.every if r.status is SandboxStatus.PENDING]
        if pending and plan.child_of is not None:
            raise PlanStateError(
                f"plan {plan.plan_id} is a child that its parent has not started yet",
                f"agents plan resume {plan.child_of.parent_id}",
            )
        if not pending:
            return False
        first = {resource.resource_id: self._make_sandbox(resource) for resource in pending}
        made = [resource.ready(first[resource.resource_id].ref) for resource in pending]
        # Until they are on record they are made again after a crash; from then on they are there.
        self._workspace.sandboxes.make_durable(made)
        with self._runtime.unit_of_work() as uow:
            uow.resources.save(*made)
            uow.commit()
        resources.put(made)
        if len(pending) == len(resources.every):
            captured = resources.capturable
            snapshots = {r.resource_id: first[r.resource_id] for r in captured}
            resources.last_capture = Capture(resources=captured, snapshots=snapshots).again()
        return True

    def _make_sandbox(self, resource: PlanResource) -> Snapshot:
        """With its first snapshot, which is given back."""
        self._runtime.events.emit(SandboxCreating(resource=resource.name))
        self._workspace.sandboxes.create(resource)
        return self._workspace.snapshots.capture(resource)

    def _fail(self, plan_id: PlanId, error: PlanError) -> None:
        """Something that is no tool's fault: a sandbox or a snapshot that could not be made."""
        self._ledger.mark_all_uncertain(plan_id)
        self._executor.fail(plan_id, PlanFailure.of(error))

    def _settle(self, plan: Plan, resources: HeldResources) -> Plan:
        """What was cut off is undone; but of a program that a person ran it is kept, as a step."""
        program = plan.action.is_program and plan.head is not None
        if resources.in_place and plan.state is not State.PROCESSING:
            program = False  # nothing of ours ran there since the last step
        if program and self._unfinished.is_certain(resources):
            with self._runtime.unit_of_work.reading() as uow:
                course = RunState.of(uow, plan, resources)
            plan = self._executor.unannounced.keep(plan, course)
        return self._unfinished.undo(plan, resources)

    def _undo_running_step(self, plan_id: PlanId) -> Sequence[str]:
        """Gives back what the step may have done outside, where nothing is undone."""
        cut_off = self._ledger.mark_all_uncertain(plan_id)
        doubtful = [text for effect in cut_off for text in effect.effects]
        with self._runtime.unit_of_work.reading() as uow:
            uow.plans.refuse_overtaken(plan_id)  # what the sandboxes hold would not be ours to undo
            held = HeldPlan.of(uow, plan_id)
        if held.plan.state is State.PROCESSING:
            plan = self._settle(held.plan, held.resources)
            with self._runtime.unit_of_work() as uow:
                uow.plans.save(_waiting(plan))
                uow.commit()
        return doubtful

    def _load(self, plan_id: PlanId) -> Plan:
        with self._runtime.unit_of_work.reading() as uow:
            return uow.plans.get(plan_id)


def _interrupted(plan: Plan, doubtful: Sequence[str]) -> PlanError:
    if plan.action.is_program:
        return InterruptedProgramError(plan.plan_id)
    return InterruptedPlanError(plan.plan_id, doubtful)


def _waiting(plan: Plan) -> Plan:
    """A program that was cut off has not ended well, which is not forgotten: what it did is no
    result until somebody says so."""
    if not plan.action.is_program:
        return plan.interrupt()
    return plan.hold(PlanFailure.of(InterruptedProgramError(plan.plan_id)))
