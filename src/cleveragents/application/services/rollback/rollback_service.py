"""The way back: safety group and intent first, then the files, then one transaction."""

from collections.abc import Sequence

from msgspec.structs import replace

from cleveragents.application.ports.runtime import (
    EventSink,
    PlanLocks,
    Sandboxes,
    SnapshotStore,
    UnitOfWorkFactory,
)
from cleveragents.application.services.checkpoints.capture import Capture
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.corrections.correction_finisher import CorrectionFinisher
from cleveragents.application.services.effects.compensations import Compensations
from cleveragents.application.services.rollback.let_stand import brought_back
from cleveragents.application.services.rollback.rewind import RewindResult, look_ahead, rewind
from cleveragents.application.services.rollback.rollback_files import (
    ChangedResource,
    RollbackFiles,
    excluded_paths,
    notes_of,
    reverted,
)
from cleveragents.application.services.rollback.target import (
    Confirm,
    RollbackQuestion,
    RollbackTarget,
)
from cleveragents.application.services.sandboxes.after_restart import AfterRestart
from cleveragents.application.services.sandboxes.project_care import ProjectCare
from cleveragents.application.services.sandboxes.rebuilding import SandboxRebuilding
from cleveragents.application.services.subplans.sandboxes import children_stopped
from cleveragents.domain.checkpoint import (
    CheckpointGroup,
    CheckpointMoment,
    CheckpointReason,
    RollbackPreview,
    RollbackResult,
)
from cleveragents.domain.correction import Correction
from cleveragents.domain.effects import EffectReport
from cleveragents.domain.errors import (
    CheckpointRequiredError,
    DeclinedError,
    PlanError,
    RollbackPendingError,
)
from cleveragents.domain.events import Recovered
from cleveragents.domain.ids import DecisionId, GroupId, PlanId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.selection import Selection, select


class RollbackService:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        checkpoints: CheckpointService,
        workplace: tuple[Sandboxes, SnapshotStore, SandboxRebuilding, ProjectCare],
        compensations: Compensations,
        locks: PlanLocks,
        events: EventSink,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._checkpoints = checkpoints
        self._sandboxes, self._snapshots, self._rebuilding, self._projects = workplace
        self._files = RollbackFiles(checkpoints, self._snapshots)
        self._restarts = AfterRestart(unit_of_work, checkpoints, workplace[:2], events)
        self._compensations = compensations
        self.corrections = CorrectionFinisher(unit_of_work, checkpoints, self._files, compensations)
        self._locks = locks
        self._events = events

    def rollback(
        self,
        plan_id: PlanId,
        wanted: str | None,
        confirm: Confirm,
        only: Sequence[str] = (),
        *,
        rebuild: bool = False,
    ) -> RollbackResult:
        """Take the plan and all its sandboxes back to a group; `confirm` is asked before that.

        `only` names single files: they come back, and the plan goes on from where it stands. With
        `rebuild`, sandboxes that are gone or unusable are made again first.
        """
        with self._locks.hold(plan_id, "rollback"):
            plan = self._load(plan_id)
            plan = self.recover(plan, rebuild=rebuild and plan.rollback_target is not None)
            aim = self._guarded(plan, wanted, only, rebuild=rebuild)
            if not confirm(RollbackQuestion(aim.target, lambda: self._look_ahead(plan, aim))):
                raise DeclinedError("the rollback")
            with children_stopped(self._unit_of_work, self._locks, plan_id, "rollback"):
                plan, safety = self._keep_the_present(plan, aim)
                effects = self._compensate(plan, aim)
                changed = self._restore_or_put_back(plan, aim, safety)
                rewound = self._record(plan, aim, safety, changed)
            self._checkpoints.free_space(plan_id)
            return replace(self._result(aim, safety, changed, rewound), effects=effects)

    def preview(
        self, plan_id: PlanId, wanted: str | None, only: Sequence[str] = ()
    ) -> RollbackPreview:
        """What `rollback` would do now. Nothing is changed, not even what was cut off."""
        with self._locks.hold(plan_id, "rollback --dry-run"):
            plan = self._load(plan_id)
            return self._look_ahead(plan, self._guarded(plan, wanted, only))

    def recover(self, plan: Plan, *, rebuild: bool = False) -> Plan:
        """Follow projects that were moved, then finish what a crash interrupted: the making of
        sandboxes again, then a rollback. With `rebuild`, those that are gone are made again too.

        The caller holds the plan's lock.
        """
        if plan.is_final:
            return plan
        self._projects.attend(plan.plan_id)
        if rebuild:
            self._rebuilding.rebuild(plan.plan_id)
        else:
            self._rebuilding.finish(plan.plan_id)
        if plan.rollback_target is None or plan.safety_group is None:
            return self._restarts.mend(plan)
        safety = self._group(plan.safety_group)
        correction = self.corrections.pending(plan)
        if self._restarts.secured(plan) and (correction is not None or plan.rollback_only):
            # These write some files only: the others have to be what they were before, first.
            self._files.restore(plan.plan_id, safety)
        if correction is not None:
            return self._finish_correction(plan, correction)
        aim = self._unfinished(plan, plan.rollback_target)
        with children_stopped(self._unit_of_work, self._locks, plan.plan_id, "rollback"):
            effects = self._compensate(plan, aim)
            changed = self._restore_or_put_back(plan, aim, safety)
            plan = self._record(plan, aim, safety, changed).plan
        what = "rollback to" if aim.only is None else "restoring of files from"
        done = f"finished the interrupted {what} {aim.target.group_id}"
        self._tell(done, *effects.sentences(), *notes_of(changed))
        return plan

    def return_to_boundary(self, plan: Plan) -> Plan:
        """Undo what an unfinished step left in the sandboxes. The caller holds the plan's lock."""
        for resource in self._checkpoints.resources(plan.plan_id):
            self._sandboxes.check(resource)
        found = self._restarts.look(plan)
        if found is not None and not found.moved:
            self._restarts.settled(plan)
            return plan
        if found is None:
            self._tell("what is undone is not kept: a restart has left it unreadable")
        elif not self._is_head({k: item.state_hash for k, item in found.snapshots.items()}, plan):
            plan = self._keep_half_done(plan, found)
        # Read again, for what they have cost may be counted now.
        resources = self._checkpoints.resources(plan.plan_id)
        together = len(resources) == len(self._checkpoints.sandboxes(plan.plan_id))
        restored = [
            (r, self._snapshots.restore(r, r.boundary or "", together=together)) for r in resources
        ]
        with self._unit_of_work() as uow:
            for resource, result in restored:
                uow.resources.save(resource.at_boundary(result.snapshot.ref))
            uow.commit()
        self._restarts.settled(plan)
        changed = sum(len(result.changes) for _, result in restored)
        what = "1 change" if changed == 1 else f"{changed} changes"
        notes = [note for _, result in restored for note in result.notes]
        self._tell(f"undid {what} of an unfinished step", *notes)
        return plan

    def check_restorable(self, target: CheckpointGroup, only: Selection) -> None:
        """Raise unless the sandboxes are there, and what is selected could be restored now."""
        for resource in self._checkpoints.resources(target.plan_id):
            self._sandboxes.check(resource)
        self._checkpoints.verify_restorable(target, only)

    def compare_only(
        self, plan: Plan, target: CheckpointGroup, only: Selection
    ) -> Sequence[ChangedResource]:
        """What bringing these files back would change now; nothing is written."""
        return self._files.compare_only(plan, target, only)

    def _finish_correction(self, plan: Plan, correction: Correction) -> Plan:
        done = self.corrections.finish(plan, correction)
        message = f"finished the interrupted correction of {correction.decision_id}"
        self._tell(message, *done.effects.sentences(), *notes_of(done.changed))
        return done.plan

    # --- 1: guards, before anything changes -----------------------------------------------------

    def _guarded(
        self, plan: Plan, wanted: str | None, only: Sequence[str], *, rebuild: bool = False
    ) -> RollbackTarget:
        plan.refuse_if_final()
        plan.refuse_if_applying()
        if wanted is None:
            groups = self._checkpoints.list_checkpoints(plan.plan_id)
            names = [f"{group.group_id}  {group.label}" for group in groups]
            raise CheckpointRequiredError(plan.plan_id, names)
        target = self._checkpoints.get_checkpoint(plan.plan_id, wanted)
        resources = self._checkpoints.resources(plan.plan_id)
        selection = select(only, resources) if only else None
        if rebuild:
            self._checkpoints.verify_restorable(target, selection)
            self._rebuilding.rebuild(plan.plan_id, target)
        for resource in resources:
            self._sandboxes.check(resource)
        self._checkpoints.verify_restorable(target, selection)
        if selection is not None:
            self._files.refuse_unknown(plan.plan_id, target, selection)
        return RollbackTarget(target=target, wanted=wanted, only=selection)

    def _look_ahead(self, plan: Plan, aim: RollbackTarget) -> RollbackPreview:
        added = 1 if aim.only is None else 2
        changed = self._compared(plan, aim)
        with self._unit_of_work.reading() as uow:
            outlook = look_ahead(uow, plan, aim.target)
        whole = aim.only is None
        effects = self._compensations.foresee(plan, aim.target) if whole else EffectReport()
        after = plan if whole else plan.with_files_restored()
        return RollbackPreview(
            plan_id=plan.plan_id,
            group=aim.target,
            checkpoint_id=aim.checkpoint_id,
            reverted=reverted(changed),
            child_plans_invalidated=outlook.children_invalidated if whole else 0,
            decisions_discarded=outlook.discarded if whole else 0,
            tool_calls_undone=len(outlook.undone) if whole else 0,
            phase=Phase.EXECUTE if whole else after.phase,
            state=State.QUEUED if whole else after.state,
            checkpoints_remaining=self._checkpoints.count_after(plan, aim.target, added),
            only=aim.only.names if aim.only else (),
            effects=effects,
            excluded=excluded_paths(changed),
            notes=tuple(aim.caveats(plan)),
            undoes_step=not whole and self._checkpoints.stands_mid_step(plan),
            finishes_first=plan.rollback_target,
        )

    def _compared(self, plan: Plan, aim: RollbackTarget) -> Sequence[ChangedResource]:
        if aim.only is None:
            return self._files.compare(plan.plan_id, aim.target)
        return self._files.compare_only(plan, aim.target, aim.only)

    # --- 2: safety group and intent, in one transaction -----------------------------------------

    def _keep_the_present(self, plan: Plan, aim: RollbackTarget) -> tuple[Plan, CheckpointGroup]:
        moment = CheckpointMoment(
            reason=CheckpointReason.BEFORE_ROLLBACK,
            source="rollback",
            label=aim.label,
            decision_id=self._standing_on(plan),
            step_index=plan.last_completed_step + 1,
            mid_step=self._checkpoints.stands_mid_step(plan),
            rollback_target=aim.target.group_id,
            rollback_only=aim.only.names if aim.only else (),
        )
        return self._checkpoints.record(plan, moment)

    def _keep_half_done(self, plan: Plan, found: Capture) -> Plan:
        """What a resume is about to undo, unless the plan says that it wants no groups at all."""
        if not plan.action.rollback_policy.enabled:
            self._tell("what is undone is not kept: rollback_policy.enabled is false")
            return plan
        moment = CheckpointMoment(
            reason=CheckpointReason.BEFORE_ROLLBACK,
            source="rollback",
            label="before resume",
            decision_id=self._standing_on(plan),
            step_index=plan.last_completed_step + 1,
            mid_step=self._checkpoints.stands_mid_step(plan),
        )
        plan, kept = self._checkpoints.record(plan, moment, found=found)
        self._tell(f"what is undone is kept in {kept.group_id}")
        return plan

    def _compensate(self, plan: Plan, aim: RollbackTarget) -> EffectReport:
        """Outside effects go first: a compensating tool may need the files as they are."""
        if aim.only is not None:
            return EffectReport()
        return self._compensations.undo(plan, aim.target)

    # --- 3: the files ---------------------------------------------------------------------------

    def _restore_or_put_back(
        self, plan: Plan, aim: RollbackTarget, safety: CheckpointGroup
    ) -> Sequence[ChangedResource]:
        try:
            if aim.only is None:
                return self._files.restore(plan.plan_id, aim.target)
            return self._files.restore_only(plan, aim.target, aim.only)
        except PlanError as error:
            self._put_back(plan.plan_id, safety, error)
            with self._unit_of_work() as uow:
                uow.plans.save(plan.abandon_rollback())
                uow.commit()
            raise

    def _put_back(self, plan_id: PlanId, safety: CheckpointGroup, cause: PlanError) -> None:
        try:
            self._files.restore(plan_id, safety)
        except PlanError as error:
            # The intent stays stored, so the next command tries to finish what this one could not.
            raise RollbackPendingError(plan_id, cause.message, error.message) from error

    # --- 4: the record, in one transaction ------------------------------------------------------

    def _record(
        self,
        plan: Plan,
        aim: RollbackTarget,
        safety: CheckpointGroup,
        changed: Sequence[ChangedResource],
    ) -> RewindResult:
        if aim.only is not None:
            return self._go_on(plan, aim, safety)
        with self._unit_of_work() as uow:
            rewound = rewind(uow, plan, aim.target)
            for item in changed:
                if item.boundary is not None:
                    uow.resources.save(item.resource.at_boundary(item.boundary))
            uow.commit()
        return rewound

    def _go_on(self, plan: Plan, aim: RollbackTarget, safety: CheckpointGroup) -> RewindResult:
        """Single files are a change like any other: a group of its own, and nothing discarded."""
        restored = aim.only
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
        additions = brought_back(restored, f"{names} came back from {aim.target.label}")
        plan, _ = self._checkpoints.record(plan.with_files_restored(), moment, additions)
        return RewindResult(plan=plan, decisions_discarded=0, undone=())

    def _result(
        self,
        aim: RollbackTarget,
        safety: CheckpointGroup,
        changed: Sequence[ChangedResource],
        rewound: RewindResult,
    ) -> RollbackResult:
        plan = rewound.plan
        return RollbackResult(
            plan_id=plan.plan_id,
            group=aim.target,
            checkpoint_id=aim.checkpoint_id,
            undo_group=safety,
            reverted=reverted(changed),
            child_plans_invalidated=rewound.children_invalidated,
            decisions_discarded=rewound.decisions_discarded,
            tool_calls_undone=len(rewound.undone),
            phase=plan.phase,
            state=plan.state,
            checkpoints_remaining=len(self._checkpoints.list_checkpoints(plan.plan_id)),
            only=aim.only.names if aim.only else (),
            excluded=excluded_paths(changed),
            notes=(*notes_of(changed), *aim.caveats(plan)),
        )

    def _tell(self, *sentences: str) -> None:
        for sentence in sentences:
            self._events.emit(Recovered(message=sentence))

    def _unfinished(self, plan: Plan, target: GroupId) -> RollbackTarget:
        chosen = plan.rollback_only
        only = select(chosen, self._checkpoints.resources(plan.plan_id)) if chosen else None
        return RollbackTarget(target=self._group(target), only=only)

    def _is_head(self, hashes: dict[str, str], plan: Plan) -> bool:
        """Whether the group the plan stands on already holds the present state."""
        if plan.head is None:
            return False
        with self._unit_of_work.reading() as uow:
            states = uow.checkpoints.holding(plan.head).resource_states
        return hashes == {state.resource_id: state.state_hash for state in states}

    def _standing_on(self, plan: Plan) -> DecisionId | None:
        if plan.head is None:
            return None
        with self._unit_of_work.reading() as uow:
            return uow.checkpoints.holding(plan.head).decision_id

    def _load(self, plan_id: PlanId) -> Plan:
        with self._unit_of_work.reading() as uow:
            return uow.plans.get(plan_id)

    def _group(self, group_id: GroupId) -> CheckpointGroup:
        with self._unit_of_work.reading() as uow:
            return uow.checkpoints.get(group_id)
