"""Apply: merge and check everything first, then change all of the project or none of it.

The order, which ADR 0021 gives the reasons for: intent stored; each resource changed, with what it
was kept beside it; the plan is applied; the sandboxes go. A kill leaves the intent and what was
kept: the next `plan apply` finishes it (`_stored`), or takes it back (`_given_up`). What a kill
leaves of one resource is told by its type: `carry_out.py`, `journal.py`, `sqlite/apply.py`.
Why: until the plan is on record as applied, everything can be taken back, last resource first; from
then on only `agents undo` takes it back, for as long as what it needs is kept (`keeping.py`).
What is not guaranteed: that others see it at one instant, as resources change one after the other;
and what somebody changed on top of ours stays when we take ours back, which is told.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from cleveragents.application.ports.runtime import (
    Runtime,
    Workspace,
)
from cleveragents.application.services.apply.keeping import ApplyKeeping
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.rollback.rollback_service import RollbackService
from cleveragents.application.services.rollback.unchecked_steps import (
    UncheckedStep,
    unchecked_steps,
)
from cleveragents.domain.apply import ApplyOptions, PreparedApply, intended, trespassers
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyEditsKeptError,
    ApplyPendingError,
    ApplyRefusedError,
    DeclinedError,
    InterruptedApplyError,
    MachineError,
    NothingIgnoredError,
    PlanError,
    ValidationUnmetError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan, PlanFailure, State
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.validations import required, unmet


class ApplyQuestion(Struct, frozen=True, kw_only=True):
    """What a person is asked before the project changes."""

    diffs: Mapping[str, ResourceDiff]
    targets: Mapping[str, str]
    unchecked: tuple[UncheckedStep, ...]


Confirm = Callable[[ApplyQuestion], bool]


class ApplyResult(Struct, frozen=True, kw_only=True):
    """What reached the project. `kept` names the sandboxes that stay: they hold files that apply
    did not take, or the settings say so. Until `undo_until` all of it can be taken back."""

    plan: Plan
    refs: Mapping[str, str]
    diffs: Mapping[str, ResourceDiff]
    kept: Mapping[str, str]
    unchecked: tuple[UncheckedStep, ...] = ()
    undo_until: datetime | None = None


class ApplyService(Struct, frozen=True):
    _runtime: Runtime
    _checkpoints: CheckpointService
    _rollbacks: RollbackService
    _workspace: Workspace
    _keeping: ApplyKeeping

    def apply(self, plan_id: PlanId, options: ApplyOptions, confirm: Confirm) -> ApplyResult:
        with self._runtime.locks.hold(plan_id, "apply"):
            held = self._rollbacks.take_up(plan_id)
            plan, resources = held.plan, _in_order(held.resources)
            unfinished = _stored(plan, resources)
            if unfinished:
                return self._carry_out(plan, resources, unfinished)
            if plan.state is State.APPLIED:  # its own clean-up may have been interrupted
                self._keeping.settle(plan_id, resources, _tokens(resources))
                self._keeping.refuse_undone(plan_id)
            self._refuse_unvalidated(plan, resources)
            plan = plan.begin_apply()
            for resource in resources:
                self._workspace.sandboxes.check(resource)
            prepared = self._prepare(plan, resources, options)
            diffs = {r.name: prepared[r.name].diff for r in resources}
            targets = {r.name: prepared[r.name].target for r in resources}
            unchecked = self._unchecked(plan)
            if not confirm(ApplyQuestion(diffs=diffs, targets=targets, unchecked=unchecked)):
                raise DeclinedError("the apply")
            plan, resources = self._store_intent(plan, held.resources, prepared)
            return self._carry_out(plan, resources, prepared)

    def _refuse_unvalidated(self, plan: Plan, resources: Sequence[PlanResource]) -> None:
        """Raises ValidationUnmetError. What has steps left is refused for that, and not here."""
        stopped_there = plan.error is not None and plan.action.validation(plan.error.tool or "")
        if plan.is_final or not required(plan.action) or not (plan.executed or stopped_there):
            return
        with self._runtime.unit_of_work.reading() as uow:
            calls = [call for call in uow.tool_calls.of_plan(plan.plan_id) if not call.undone]
        problems = list(unmet(plan.action, calls))
        for resource in resources:
            self._workspace.sandboxes.check(resource)
            if self._workspace.snapshots.capture(resource).ref != resource.boundary:
                problems.append(f"`{resource.name}` was changed by hand since it was validated")
        if problems:
            raise ValidationUnmetError(plan.plan_id, problems)

    def _prepare(
        self, plan: Plan, resources: Sequence[PlanResource], options: ApplyOptions
    ) -> Mapping[str, PreparedApply]:
        try:
            found = {r.name: self._workspace.sandboxes.prepare_apply(r, options) for r in resources}
            _refuse_trespass(resources, found)
            _refuse_nothing(options, found)
            return found
        except (ApplyConflictError, ApplyRefusedError) as error:
            self._save(plan.constrain(PlanFailure.of(error)))
            raise

    def _store_intent(
        self,
        plan: Plan,
        held: HeldResources,
        prepared: Mapping[str, PreparedApply],
    ) -> tuple[Plan, Sequence[PlanResource]]:
        # Intent before effect: with the tokens stored, a killed apply is finished or taken back.
        if self._checkpoints.is_on(Trigger.BEFORE_APPLY):
            moment = CheckpointMoment(
                reason=CheckpointReason.BEFORE_APPLY,
                source="apply",
                label="before apply",
                decision_id=None,
                step_index=max(plan.last_completed_step, 0),
            )
            trigger = Trigger.BEFORE_APPLY
            held.something_runs()  # a person was asked, who may have taken a while
            plan = self._checkpoints.auto_create_if_configured(trigger, plan, held, moment).plan
        resources = _in_order(held)
        marked = [
            r.intending(prepared[r.name].token, prepared[r.name].snapshots) for r in resources
        ]
        self._workspace.sandboxes.make_durable(resources)
        with self._runtime.unit_of_work() as uow:
            uow.resources.save(*marked)
            uow.plans.save(plan)
            uow.commit()
        return plan, marked

    def _carry_out(
        self,
        plan: Plan,
        resources: Sequence[PlanResource],
        prepared: Mapping[str, PreparedApply],
    ) -> ApplyResult:
        try:
            refs = {
                r.name: self._workspace.sandboxes.carry_out(r, prepared[r.name]) for r in resources
            }
            # What cannot be made durable is taken back as what cannot be written is.
            self._workspace.sandboxes.make_durable(resources)
        except (PlanError, OSError, KeyboardInterrupt) as cause:
            raise self._given_up(plan, resources, prepared, cause) from cause
        plan = plan.apply(refs, self._runtime.clock.now())
        # From here on this apply is not taken back any more, but by somebody who says so.
        change = self._keeping.record(plan, resources, prepared)
        diffs = {
            r.name: self._workspace.sandboxes.applied_diff(r, refs[r.name]).leaving_out(
                prepared[r.name].diff
            )
            for r in resources
        }
        return ApplyResult(
            plan=plan,
            refs=refs,
            diffs=diffs,
            kept=self._keeping.settle(plan.plan_id, resources, prepared),
            unchecked=self._unchecked(plan),
            undo_until=change.until if change else None,
        )

    def _given_up(
        self,
        plan: Plan,
        resources: Sequence[PlanResource],
        prepared: Mapping[str, PreparedApply],
        cause: BaseException,
    ) -> PlanError:
        """All of the project becomes what it was. Raises ApplyPendingError if that fails."""
        reason = _reason(plan.plan_id, cause)
        kept = self._take_back(plan.plan_id, resources, prepared, reason)
        error = ApplyEditsKeptError(plan.plan_id, reason.message, kept) if kept else reason
        # Before the record: as long as the intent is stored, this is repeated after a kill.
        self._settle(resources, prepared)
        self._workspace.sandboxes.make_durable(resources)
        with self._runtime.unit_of_work() as uow:
            uow.resources.save(*(resource.withdrawn() for resource in resources))
            uow.plans.save(plan.constrain(PlanFailure.of(error)))
            uow.commit()
        return error

    def _take_back(
        self,
        plan_id: PlanId,
        resources: Sequence[PlanResource],
        prepared: Mapping[str, PreparedApply],
        reason: PlanError,
    ) -> list[str]:
        """As much as can be, last first; gives back what somebody has changed on top."""
        kept: list[str] = []
        obstacles: list[str] = []
        for resource in reversed(resources):
            try:
                names = self._workspace.sandboxes.revert(resource, prepared[resource.name])
            except PlanError as error:
                obstacles.append(f"`{resource.name}`: {error.message}")
            else:
                kept += [f"{resource.name}: {name}" for name in names]
        if obstacles:
            raise ApplyPendingError(plan_id, reason.message, "; ".join(obstacles)) from reason
        return kept

    def _settle(
        self, resources: Sequence[PlanResource], prepared: Mapping[str, PreparedApply]
    ) -> None:
        for resource in resources:
            self._workspace.sandboxes.finish(resource, prepared[resource.name])

    def _unchecked(self, plan: Plan) -> tuple[UncheckedStep, ...]:
        with self._runtime.unit_of_work.reading() as uow:
            return unchecked_steps(uow, plan)

    def _save(self, plan: Plan) -> None:
        with self._runtime.unit_of_work() as uow:
            uow.plans.save(plan)
            uow.commit()


def _in_order(resources: HeldResources) -> Sequence[PlanResource]:
    # Databases last: a failed write there must find the rest still easy to put back.
    return sorted(resources.sandboxes, key=lambda resource: not resource.kind.is_folder)


def _stored(plan: Plan, resources: Sequence[PlanResource]) -> Mapping[str, PreparedApply]:
    """What an interrupted apply had prepared and stored, if there is one."""
    return _tokens(resources) if plan.state is State.PROCESSING else {}


def _tokens(resources: Sequence[PlanResource]) -> Mapping[str, PreparedApply]:
    return {
        resource.name: intended(resource.resource_id, resource.intent)
        for resource in resources
        if resource.intent is not None
    }


def _refuse_nothing(options: ApplyOptions, prepared: Mapping[str, PreparedApply]) -> None:
    """A name that is mistyped must not look as if there had been nothing to bring."""
    taken = {path for item in prepared.values() for path in item.ignored}
    lacking = [path for path in options.with_ignored if path not in taken]
    if lacking:
        changed = [path for item in prepared.values() for path in item.diff.left_behind]
        raise NothingIgnoredError(lacking, changed)


def _refuse_trespass(
    resources: Sequence[PlanResource], prepared: Mapping[str, PreparedApply]
) -> None:
    """What one resource brings must not be led astray by what another one does: a journal that
    appears beside a database decides what becomes of it."""
    for owner in resources:
        for other in resources:
            if other is owner:
                continue
            diff, alone = prepared[other.name].diff, prepared[owner.name].alone
            found = trespassers(other.location, diff, alone)
            if found:
                raise ApplyConflictError(
                    owner.plan_id,
                    other.name,
                    found,
                    f"they belong to `{owner.name}`",
                    "take them out of the sandbox of "
                    f"`{other.name}`: agents plan rollback {owner.plan_id} CHECKPOINT",
                )


def _reason(plan_id: PlanId, cause: BaseException) -> PlanError:
    if isinstance(cause, KeyboardInterrupt):
        return InterruptedApplyError(plan_id)
    return cause if isinstance(cause, PlanError) else MachineError(str(cause))
