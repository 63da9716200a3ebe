"""The way back: safety group and intent first, then the files, then one transaction.

What is refused before anything changes, such as a plan that is applied: `_guarded`.
What: all sandboxes, the plan and what counts of its history become what a group says they were.
In which order: guards, which change no sandbox that is there; the safety group and the intent, in
one transaction; compensations of outside effects; the files; one transaction for the record.
Why: the intent is on record before a file changes, so that whoever comes next can finish it
(`recover`). Compensations may need the files as they are. The record comes last, so that it never
says of files what they are not yet. If the files fail, they are put back and the intent goes.
What is not guaranteed: sandboxes go back one after the other, and are of two moments in between. A
compensation that fails stops nothing, and one that ran stays done if the files fail after it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cleveragents.application.plan_events import tell_recovered
from cleveragents.application.ports.runtime import (
    Runtime,
    Workspace,
)
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    stands_mid_step,
)
from cleveragents.application.services.checkpoints.held import HeldPlan, HeldResources
from cleveragents.application.services.checkpoints.naming import named_group
from cleveragents.application.services.checkpoints.recorded_with import CommitExtras
from cleveragents.application.services.effects.compensations import Compensations
from cleveragents.application.services.rollback.in_place import (
    InPlaceRollback,
    spared_since,
    spares_of,
    told_left,
)
from cleveragents.application.services.rollback.result import result_of
from cleveragents.application.services.rollback.rewind import RewindResult, look_ahead, rewind
from cleveragents.application.services.rollback.rollback_files import (
    ChangedResource,
    RollbackFiles,
    excluded_paths,
    left_of,
    notes_of,
    reverted,
)
from cleveragents.application.services.rollback.target import (
    Choose,
    Confirm,
    RollbackQuestion,
    RollbackTarget,
)
from cleveragents.application.services.rollback.unchecked_steps import BroughtBack
from cleveragents.application.services.sandboxes.care import SandboxCare
from cleveragents.application.services.subplans.sandboxes import children_stopped
from cleveragents.domain.checkpoint import (
    CheckpointGroup,
    CheckpointMoment,
    CheckpointReason,
    RollbackPreview,
    RollbackResult,
)
from cleveragents.domain.checkpoint_lookup import told_apart
from cleveragents.domain.correction import Correction
from cleveragents.domain.effects import EffectReport
from cleveragents.domain.errors import CheckpointRequiredError, DeclinedError, PlanError
from cleveragents.domain.ids import GroupId, PlanId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.selection import Selection, select

if TYPE_CHECKING:  # hardly ever has one been cut off
    from cleveragents.application.services.corrections.correction_finisher import CorrectionFinisher


class RollbackService:
    def __init__(
        self,
        runtime: Runtime,
        checkpoints: CheckpointService,
        workspace: Workspace,
        care: SandboxCare,
        corrections: "CorrectionFinisher",
        compensations: Compensations,
    ) -> None:
        self._runtime = runtime
        self._checkpoints = checkpoints
        self._sandboxes = workspace.sandboxes
        self._care = care
        self._files = RollbackFiles(workspace.snapshots)
        self._in_place = InPlaceRollback(checkpoints, self._files, care.others)
        self._corrections = corrections
        self._compensations = compensations

    def rollback(
        self,
        plan_id: PlanId,
        wanted: str | Choose | None,
        confirm: Confirm,
        only: Sequence[str] = (),
        *,
        rebuild: bool = False,
        keep: bool = False,
    ) -> RollbackResult:
        """Take the plan and all its sandboxes back to a group; `confirm` is asked before that.

        `only` names single files: they come back, and the plan goes on from where it stands. With
        `rebuild`, sandboxes that are gone or unusable are made again first. With `keep`, what
        others have changed in place since the last group stays as it is.
        """
        with self._runtime.locks.hold(plan_id, "rollback"):
            held = self._held(plan_id)
            pending = held.plan.rollback_target
            held = self.recover(held, rebuild=rebuild and pending is not None)
            aim = self._guarded(held, self._meant(held, wanted, pending), only, rebuild=rebuild)
            aim = replace(aim, keep=keep)
            self._in_place.refuse_in_use(held, aim)
            if not confirm(self._question(held, aim)):
                raise DeclinedError("the rollback")
            with children_stopped(self._runtime.locks, held, "rollback"):
                others = self._in_place.changed_by_others(held, aim)
                held, safety = self._keep_the_present(self._in_place.note_others(held, aim), aim)
                effects = self._compensate(held.plan, aim)
                changed = self._restore_or_put_back(held, aim, safety)
                if aim.only is None:  # else they are captured once more
                    self._files.let_go(held.resources)
                rewound = self._record(held, aim, safety, changed)
            self._checkpoints.free_space(plan_id, if_worth=True)
            done = result_of(aim, safety, changed, rewound)
            in_place = held.resources.in_place
            return replace(done, effects=effects, others=others, in_place=in_place)

    def preview(
        self, plan_id: PlanId, wanted: str | Choose | None, only: Sequence[str] = ()
    ) -> RollbackPreview:
        """What `rollback` would do now. Nothing is changed, not even what was cut off."""
        with self._runtime.locks.hold(plan_id, "rollback --dry-run"):
            held = self._held(plan_id)
            name = self._meant(held, wanted, held.plan.rollback_target)
            return self._look_ahead(held, self._guarded(held, name, only))

    def take_up(self, plan_id: PlanId, *, rebuild: bool = False) -> HeldPlan:
        """Whatever is to be done with a plan begins here; the caller holds its lock.

        Projects that were moved are followed, then what a crash interrupted is finished: the making
        of sandboxes again, then a rollback. With `rebuild`, sandboxes that are gone are made again
        too.
        """
        return self.recover(self._held(plan_id), rebuild=rebuild)

    def recover(self, held: HeldPlan, *, rebuild: bool = False) -> HeldPlan:
        """The same for a plan that was just read."""
        plan, resources = held.plan, held.resources
        if plan.is_final:
            return held
        if plan.rollback_target is None or plan.safety_group is None:
            return self._care.mended(held, rebuild=rebuild)
        self._care.attend(held, rebuild=rebuild)
        safety = self._group(plan.safety_group)
        correction = self._corrections.pending(plan)
        doubtful = not resources.in_place and self._care.restarts.secured(resources)
        if doubtful and (correction is not None or plan.rollback_only):
            # These write some files only: the others have to be what they were before, first.
            self._files.restore(resources, safety)
        if correction is not None:
            return self._finish_correction(held, correction)
        for resource in resources.capturable if resources.in_place else ():
            self._sandboxes.check(resource)
        aim = self._unfinished(held, plan.rollback_target)
        with children_stopped(self._runtime.locks, held, "rollback"):
            effects = self._compensate(plan, aim)
            changed = self._restore_or_put_back(held, aim, safety)
            plan = self._record(held, aim, safety, changed).plan
        what = "rollback to" if aim.only is None else "restoring of files from"
        done = f"finished the interrupted {what} {aim.target.group_id}"
        notes = (*effects.sentences(), *notes_of(changed), *told_left(left_of(changed)))
        tell_recovered(self._runtime.events, done, *notes)
        return replace(held, plan=plan)

    def check_restorable(
        self, resources: HeldResources, target: CheckpointGroup, only: Selection
    ) -> None:
        """Raise unless the sandboxes are there, and what is selected could be restored now."""
        for resource in resources.capturable:
            self._sandboxes.check(resource)
        self._checkpoints.verify_restorable(resources, target, only)

    def compare_only(
        self, held: HeldPlan, target: CheckpointGroup, only: Selection
    ) -> Sequence[ChangedResource]:
        """What bringing these files back would change now; nothing is written."""
        head = self._checkpoints.head_of(held.plan)
        mid_step = stands_mid_step(held.plan, held.resources, head)
        return self._files.compare_only(held.resources, target, only, undoes_step=mid_step)

    def _finish_correction(self, held: HeldPlan, correction: Correction) -> HeldPlan:
        done = self._corrections.finish(held, correction)
        message = f"finished the interrupted correction of {correction.decision_id}"
        tell_recovered(
            self._runtime.events, message, *done.effects.sentences(), *notes_of(done.changed)
        )
        return replace(held, plan=done.plan)

    # --- 1: guards, before anything changes -----------------------------------------------------

    def _meant(
        self, held: HeldPlan, wanted: str | Choose | None, pending: GroupId | None
    ) -> str | None:
        if not callable(wanted):
            return wanted
        held.plan.refuse_if_final()
        held.plan.refuse_if_applying()
        for resource in held.resources.capturable:
            self._sandboxes.check(resource)
        return wanted(held, pending)

    def _guarded(
        self, held: HeldPlan, wanted: str | None, only: Sequence[str], *, rebuild: bool = False
    ) -> RollbackTarget:
        """Refused: a plan that is applied or cancelled, one whose apply was cut off, and whatever
        could not be brought back whole."""
        plan, resources = held.plan, held.resources
        plan.refuse_if_final()
        plan.refuse_if_applying()
        if wanted is None:
            line = self._checkpoints.timeline(plan.plan_id)
            raise CheckpointRequiredError(plan.plan_id, told_apart(line))
        with self._runtime.unit_of_work.reading() as uow:
            target = named_group(uow, plan.plan_id, wanted)
            head = uow.checkpoints.holding(plan.head) if plan.head else None
        selection = select(only, resources.capturable) if only else None
        if rebuild:
            self._checkpoints.verify_restorable(resources, target, selection)
            self._care.rebuilding.rebuild(held, target)
        for resource in resources.capturable:
            self._sandboxes.check(resource)
            self._sandboxes.refuse_running(resource)
        self._checkpoints.verify_restorable(resources, target, selection)
        if selection is not None:
            self._files.refuse_unknown(resources, target, selection)
        return RollbackTarget(target=target, head=head, only=selection)

    def _question(self, held: HeldPlan, aim: RollbackTarget) -> RollbackQuestion:
        return RollbackQuestion(
            aim.target,
            lambda: self._look_ahead(held, aim),
            lambda: self._compensations.foresee(held.plan, aim.target),
            lambda: self._in_place.changed_by_others(held, aim),
            in_place=held.resources.in_place,
        )

    def _look_ahead(self, held: HeldPlan, aim: RollbackTarget) -> RollbackPreview:
        plan = held.plan
        added = 1 if aim.only is None else 2
        changed = self._compared(held, aim)
        with self._runtime.unit_of_work.reading() as uow:
            outlook = look_ahead(uow, plan, aim.target)
        whole = aim.only is None
        effects = self._compensations.foresee(plan, aim.target) if whole else EffectReport()
        after = plan if whole else plan.with_files_restored()
        return RollbackPreview(
            plan_id=plan.plan_id,
            group=aim.target,
            reverted=reverted(changed),
            child_plans_invalidated=outlook.children_invalidated if whole else 0,
            decisions_discarded=outlook.discarded if whole else 0,
            tool_calls_undone=len(outlook.undone) if whole else 0,
            phase=Phase.EXECUTE if whole else after.phase,
            state=State.QUEUED if whole else after.state,
            checkpoints_remaining=self._checkpoints.count_after(held, aim.target, added),
            only=aim.only.names if aim.only else (),
            effects=effects,
            excluded=excluded_paths(changed),
            notes=tuple(aim.caveats(plan)),
            others=self._in_place.changed_by_others(held, aim),
            in_place=held.resources.in_place,
            undoes_step=not whole and stands_mid_step(plan, held.resources, aim.head),
            finishes_first=plan.rollback_target,
        )

    def _compared(self, held: HeldPlan, aim: RollbackTarget) -> Sequence[ChangedResource]:
        resources = held.resources
        if aim.only is None:
            return self._files.compare(resources, aim.target)
        mid_step = stands_mid_step(held.plan, resources, aim.head)
        return self._files.compare_only(resources, aim.target, aim.only, undoes_step=mid_step)

    # --- 2: safety group and intent, in one transaction -----------------------------------------

    def _keep_the_present(
        self, held: HeldPlan, aim: RollbackTarget
    ) -> tuple[HeldPlan, CheckpointGroup]:
        plan, resources = held.plan, held.resources
        moment = CheckpointMoment(
            reason=CheckpointReason.BEFORE_ROLLBACK,
            source="rollback",
            label=aim.label,
            decision_id=aim.head.decision_id if aim.head else None,
            step_index=plan.last_completed_step + 1,
            mid_step=stands_mid_step(plan, resources, aim.head),
            rollback_target=aim.target.group_id,
            rollback_only=aim.only.names if aim.only else (),
            spares=spared_since(held, aim),
        )
        plan, safety = self._checkpoints.record(plan, resources, moment)
        return replace(held, plan=plan), safety

    def _compensate(self, plan: Plan, aim: RollbackTarget) -> EffectReport:
        """Outside effects go first: a compensating tool may need the files as they are."""
        if aim.only is not None:
            return EffectReport()
        return self._compensations.undo(plan, aim.target)

    # --- 3: the files ---------------------------------------------------------------------------

    def _restore_or_put_back(
        self, held: HeldPlan, aim: RollbackTarget, safety: CheckpointGroup
    ) -> Sequence[ChangedResource]:
        plan, resources = held.plan, held.resources
        spares = spares_of(held, safety, self._group)
        try:
            if aim.only is None:
                return self._files.restore(resources, aim.target, spares)
            mid_step = stands_mid_step(plan, resources, safety)
            return self._files.restore_only(
                resources, aim.target, aim.only, spares, undoes_step=mid_step
            )
        except PlanError as error:
            target = aim.target if resources.in_place else None
            self._files.put_back(resources, plan, safety, error, target)
            with self._runtime.unit_of_work() as uow:
                uow.plans.save(plan.abandon_rollback())
                uow.commit()
            raise

    # --- 4: the record, in one transaction ------------------------------------------------------

    def _record(
        self,
        held: HeldPlan,
        aim: RollbackTarget,
        safety: CheckpointGroup,
        changed: Sequence[ChangedResource],
    ) -> RewindResult:
        if aim.only is not None:
            return self._go_on(held, aim, safety)
        moved = [
            item.resource.at_boundary(item.boundary)
            for item in changed
            if item.boundary is not None
        ]
        with self._runtime.unit_of_work() as uow:
            rewound = rewind(uow, held.plan, aim.target)
            uow.resources.save(*moved)
            uow.commit()
        held.resources.put(moved)
        return rewound

    def _go_on(self, held: HeldPlan, aim: RollbackTarget, safety: CheckpointGroup) -> RewindResult:
        """Single files are a change like any other: a group of its own, and nothing discarded."""
        plan, restored = held.plan, aim.only
        assert restored is not None
        names = ", ".join(restored.names)
        moment = CheckpointMoment(
            reason=CheckpointReason.FILES_RESTORED,
            source="rollback",
            label=f"restored {names} from {aim.target.label}",
            decision_id=safety.decision_id,
            step_index=plan.last_completed_step + 1,
            undo_group=safety.group_id,
        )
        why = f"{names} came back from {aim.target.label}"
        additions = CommitExtras(brought_back=BroughtBack(files=restored, why=why))
        plan, _ = self._checkpoints.record(
            plan.with_files_restored(), held.resources, moment, additions
        )
        left = len(self._checkpoints.list_checkpoints(plan.plan_id))
        return RewindResult(plan=plan, decisions_discarded=0, undone=(), groups_left=left)

    def _unfinished(self, held: HeldPlan, target: GroupId) -> RollbackTarget:
        only = None
        if held.plan.rollback_only:
            only = select(held.plan.rollback_only, held.resources.capturable)
        return RollbackTarget(target=self._group(target), only=only)

    def _held(self, plan_id: PlanId) -> HeldPlan:
        with self._runtime.unit_of_work.reading() as uow:
            return HeldPlan.of(uow, plan_id)

    def _group(self, group_id: GroupId) -> CheckpointGroup:
        with self._runtime.unit_of_work.reading() as uow:
            return uow.checkpoints.get(group_id)
