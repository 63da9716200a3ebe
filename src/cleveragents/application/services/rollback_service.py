"""Owns the way back: safety group and intent first, then the files, then one transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cleveragents.application.ports import (
    EventSink,
    PlanLocks,
    Restored,
    Sandboxes,
    SnapshotStore,
    UnitOfWorkFactory,
)
from cleveragents.application.services.checkpoint_service import CheckpointService
from cleveragents.application.services.compensations import Compensations
from cleveragents.application.services.rewind import Rewound, rewind
from cleveragents.domain.changes import ChangeKind
from cleveragents.domain.checkpoint import (
    CheckpointGroup,
    CheckpointMoment,
    CheckpointReason,
    ResourceState,
    RevertedFile,
    RollbackResult,
)
from cleveragents.domain.errors import (
    CheckpointRequiredError,
    DeclinedError,
    PlanError,
    RestoreFailedError,
    RollbackPendingError,
)
from cleveragents.domain.events import Recovered
from cleveragents.domain.ids import DecisionId, GroupId, PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.sandbox import PlanResource

Confirm = Callable[[CheckpointGroup], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _RestoredResource:
    resource: PlanResource
    state: ResourceState
    restored: Restored

    @property
    def boundary(self) -> str:
        # A group taken in the middle of a step resumes from the boundary before that step.
        if self.state.boundary == self.state.snapshot:
            return self.restored.snapshot.ref
        return self.state.boundary


class RollbackService:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        checkpoints: CheckpointService,
        workplace: tuple[Sandboxes, SnapshotStore],
        compensations: Compensations,
        locks: PlanLocks,
        events: EventSink,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._checkpoints = checkpoints
        self._sandboxes, self._snapshots = workplace
        self._compensations = compensations
        self._locks = locks
        self._events = events

    def rollback(self, plan_id: PlanId, wanted: str | None, confirm: Confirm) -> RollbackResult:
        """Take the plan and all its sandboxes back to a group; `confirm` is asked before that."""
        with self._locks.hold(plan_id, "rollback"):
            plan = self.recover(self._load(plan_id))
            target = self._guarded(plan, wanted)
            if not confirm(target):
                raise DeclinedError("the rollback")
            plan, safety = self._keep_the_present(
                plan, f"before rollback to {target.label}", target.group_id
            )
            effects = self._compensations.undo(plan, target)
            restored = self._restore_or_put_back(plan, target, safety)
            rewound = self._rewind(plan, target, restored)
            self._checkpoints.free_space(plan_id)
            result = self._result(target, wanted or "", safety, restored, rewound)
            return replace(result, effects=effects)

    def recover(self, plan: Plan) -> Plan:
        """Finish a rollback that a crash interrupted. The caller holds the plan's lock."""
        if plan.is_final or plan.rollback_target is None or plan.safety_group is None:
            return plan
        target, safety = self._group(plan.rollback_target), self._group(plan.safety_group)
        effects = self._compensations.undo(plan, target)
        restored = self._restore_or_put_back(plan, target, safety)
        plan = self._rewind(plan, target, restored).plan
        self._events.emit(
            Recovered(message=f"finished the interrupted rollback to {target.group_id}")
        )
        for sentence in effects.sentences():
            self._events.emit(Recovered(message=sentence))
        return plan

    def return_to_boundary(self, plan: Plan) -> Plan:
        """Undo what an unfinished step left in the sandboxes. The caller holds the plan's lock."""
        resources = self._checkpoints.resources(plan.plan_id)
        for resource in resources:
            self._sandboxes.check(resource)
        present = {r.resource_id: self._snapshots.capture(r) for r in resources}
        if all(present[r.resource_id].ref == r.boundary for r in resources):
            return plan
        if not self._is_head({key: snapshot.state_hash for key, snapshot in present.items()}, plan):
            plan, kept = self._keep_the_present(plan, "before resume", None)
            self._events.emit(Recovered(message=f"what is undone is kept in {kept.group_id}"))
        restored = [(r, self._snapshots.restore(r, r.boundary or "")) for r in resources]
        with self._unit_of_work() as uow:
            for resource, result in restored:
                uow.resources.save(resource.at_boundary(result.snapshot.ref))
            uow.commit()
        changed = sum(len(result.changes) for _, result in restored)
        what = "1 change" if changed == 1 else f"{changed} changes"
        self._events.emit(Recovered(message=f"undid {what} of an unfinished step"))
        return plan

    # --- before anything changes ----------------------------------------------------------------

    def _guarded(self, plan: Plan, wanted: str | None) -> CheckpointGroup:
        plan.refuse_if_final()
        plan.refuse_if_applying()
        if wanted is None:
            groups = self._checkpoints.list_checkpoints(plan.plan_id)
            names = [f"{group.group_id}  {group.label}" for group in groups]
            raise CheckpointRequiredError(plan.plan_id, names)
        target = self._checkpoints.get_checkpoint(plan.plan_id, wanted)
        for resource in self._checkpoints.resources(plan.plan_id):
            self._sandboxes.check(resource)
        self._checkpoints.verify(target)
        return target

    def _keep_the_present(
        self, plan: Plan, label: str, target: GroupId | None
    ) -> tuple[Plan, CheckpointGroup]:
        moment = CheckpointMoment(
            reason=CheckpointReason.BEFORE_ROLLBACK,
            source="rollback",
            label=label,
            decision_id=self._standing_on(plan),
            step_index=plan.last_completed_step + 1,
            mid_step=plan.mid_step,
            rollback_target=target,
        )
        return self._checkpoints.record(plan, moment)

    def _is_head(self, hashes: dict[str, str], plan: Plan) -> bool:
        """Whether the group the plan stands on already holds the present state."""
        if plan.head is None:
            return False
        with self._unit_of_work.reading() as uow:
            states = uow.checkpoints.holding(plan.head).resource_states
        return hashes == {state.resource_id: state.state_hash for state in states}

    # --- the files ------------------------------------------------------------------------------

    def _restore_or_put_back(
        self, plan: Plan, target: CheckpointGroup, safety: CheckpointGroup
    ) -> Sequence[_RestoredResource]:
        try:
            return self._restore(plan.plan_id, target)
        except PlanError as error:
            self._put_back(plan.plan_id, safety, error)
            with self._unit_of_work() as uow:
                uow.plans.save(plan.abandon_rollback())
                uow.commit()
            raise

    def _put_back(self, plan_id: PlanId, safety: CheckpointGroup, cause: PlanError) -> None:
        try:
            self._restore(plan_id, safety)
        except PlanError as error:
            # The intent stays stored, so the next command tries to finish what this one could not.
            raise RollbackPendingError(plan_id, cause.message, error.message) from error

    def _restore(self, plan_id: PlanId, target: CheckpointGroup) -> Sequence[_RestoredResource]:
        done: list[_RestoredResource] = []
        for resource in self._checkpoints.resources(plan_id):
            state = target.state_of(resource.resource_id)
            if state is None:
                continue
            restored = self._snapshots.restore(resource, state.snapshot)
            if restored.snapshot.state_hash != state.state_hash:
                raise RestoreFailedError(resource.name, "its hash is not that of the checkpoint")
            done.append(_RestoredResource(resource=resource, state=state, restored=restored))
        return done

    # --- the record -----------------------------------------------------------------------------

    def _rewind(
        self, plan: Plan, target: CheckpointGroup, restored: Sequence[_RestoredResource]
    ) -> Rewound:
        with self._unit_of_work() as uow:
            rewound = rewind(uow, plan, target)
            for item in restored:
                uow.resources.save(item.resource.at_boundary(item.boundary))
            uow.commit()
        return rewound

    def _result(
        self,
        target: CheckpointGroup,
        wanted: str,
        safety: CheckpointGroup,
        restored: Sequence[_RestoredResource],
        rewound: Rewound,
    ) -> RollbackResult:
        named = wanted.strip().upper()
        return RollbackResult(
            plan_id=target.plan_id,
            group=target,
            checkpoint_id=named if named in target.names() else target.head,
            undo_group=safety,
            reverted=_reverted(restored),
            child_plans_invalidated=rewound.children_invalidated,
            decisions_discarded=rewound.decisions_discarded,
            tool_calls_undone=len(rewound.undone),
            phase=rewound.plan.phase,
            state=rewound.plan.state,
            checkpoints_remaining=len(self._checkpoints.list_checkpoints(target.plan_id)),
            excluded=tuple(path for item in restored for path in item.resource.exclude),
        )

    # --- small things ---------------------------------------------------------------------------

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


def _reverted(restored: Sequence[_RestoredResource]) -> tuple[RevertedFile, ...]:
    many = len(restored) > 1
    return tuple(
        RevertedFile(
            file=f"{item.resource.name}:{change.path}" if many else change.path,
            action="removed" if change.kind is ChangeKind.DELETED else "restored",
        )
        for item in restored
        for change in item.restored.changes
    )
