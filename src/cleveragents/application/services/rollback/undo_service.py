"""`undo` and `redo`: a rollback whose target is read from the plan's own past (ADR 0086).

In which order: the lock and what was cut off, as for every rollback; then where to, which is asked
only now, since until then another process may have gone on; then the rollback itself.
An undo that was cut off counts as done once it is finished: saying it again does not go further.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec import Struct

from cleveragents.application.ports.runtime import UnitOfWork, UnitOfWorkFactory
from cleveragents.application.services.checkpoints.checkpoint_service import CheckpointService
from cleveragents.application.services.checkpoints.held import HeldPlan
from cleveragents.application.services.rollback.rollback_service import RollbackService
from cleveragents.application.services.rollback.target import Confirm
from cleveragents.domain.checkpoint import (
    CheckpointGroup,
    CheckpointReason,
    RollbackPreview,
    RollbackResult,
)
from cleveragents.domain.decision import Decision
from cleveragents.domain.errors import NothingToRedoError, NothingToUndoError
from cleveragents.domain.ids import GroupId, PlanId
from cleveragents.domain.timeline import MovedStep, moved_steps
from cleveragents.domain.undo import (
    Files,
    PlanPast,
    is_at_its_end,
    leads_back,
    redoable,
    undoable,
)


class Way(StrEnum):
    BACK = "undo"
    FORWARD = "redo"


class StepsMoved(Struct, frozen=True, kw_only=True):
    """`steps` were taken back, or count again; none of them is there where something else changed
    the files, such as a correction. `undo_left` and `redo_left` are how often each can be said.
    What an actor that `decides` has done can be taken as it is; `is_result`: nobody asks twice.
    `is_complete`: it stands where it was complete once."""

    result: RollbackResult
    way: Way
    changes: int
    steps: tuple[MovedStep, ...]
    undo_left: int
    redo_left: int
    decides: bool
    is_complete: bool
    is_result: bool


class StepsForeseen(Struct, frozen=True, kw_only=True):
    """Nothing was done."""

    preview: RollbackPreview
    way: Way


class UndoService(Struct, frozen=True):
    _unit_of_work: UnitOfWorkFactory
    _rollbacks: RollbackService
    _checkpoints: CheckpointService

    def go(
        self, plan_id: PlanId, way: Way, changes: int, confirm: Confirm, *, keep: bool = False
    ) -> StepsMoved:
        """So many changes back or forward, as one rollback; `keep` is that of a rollback in place.

        Raises NothingToUndoError or NothingToRedoError where there are not so many.
        """
        before: list[_Standing] = []

        def choose(held: HeldPlan, finished: GroupId | None) -> str:
            with self._unit_of_work.reading() as uow:
                before.append(_standing(uow, plan_id))
            return self._target(held, way, changes, finished)

        result = self._rollbacks.rollback(plan_id, choose, confirm, keep=keep)
        with self._unit_of_work.reading() as uow:
            after, past = _standing(uow, plan_id), past_of(uow, plan_id)
        then, now = (before[0], after) if way is Way.BACK else (after, before[0])
        return StepsMoved(
            result=result,
            way=way,
            changes=changes,
            steps=moved_steps(then.decisions, now.decisions, then.last),
            undo_left=len(undoable(past)),
            redo_left=len(redoable(past)),
            decides=past.plan.action.decides,
            is_complete=is_at_its_end(past),
            is_result=past.plan.action.is_program,
        )

    def preview(self, plan_id: PlanId, way: Way, changes: int) -> StepsForeseen:
        """What `go` would do now; nothing is changed."""

        def choose(held: HeldPlan, pending: GroupId | None) -> str:
            return self._target(held, way, changes, pending)

        return StepsForeseen(preview=self._rollbacks.preview(plan_id, choose), way=way)

    def _target(self, held: HeldPlan, way: Way, changes: int, finished: GroupId | None) -> GroupId:
        plan_id = held.plan.plan_id
        with self._unit_of_work.reading() as uow:
            past = past_of(uow, plan_id)
        if finished is not None and _went(past, finished) is way:
            return finished
        # What nobody has recorded yet is a change too; the safety group will need it anyway.
        # Not in place: there it is named, asked about, and taken back or kept with the rest.
        in_place = held.resources.in_place
        reachable = _REACHABLE[way](past, None if in_place else self._present(held, past))
        if len(reachable) < changes and in_place and way is Way.BACK:
            # With no step before it to go along with, it is what there is to undo.
            reachable = undoable(past, self._present(held, past))
        if not past.groups and way is Way.BACK:
            raise NothingToUndoError.not_begun(plan_id)
        if len(reachable) < changes:
            error = NothingToUndoError if way is Way.BACK else NothingToRedoError
            raise error(plan_id, len(reachable))
        return reachable[changes - 1].group_id

    def _present(self, held: HeldPlan, past: PlanPast) -> Files | None:
        if not past.groups:
            return None
        found = self._checkpoints.capture(held.resources)
        return {key: seen.state_hash for key, seen in found.snapshots.items()}


_REACHABLE: dict[Way, Callable[[PlanPast, Files | None], Sequence[CheckpointGroup]]] = {
    Way.BACK: undoable,
    Way.FORWARD: redoable,
}


def past_of(uow: UnitOfWork, plan_id: PlanId) -> PlanPast:
    return PlanPast(
        plan=uow.plans.get(plan_id),
        groups=tuple(uow.checkpoints.of_plan(plan_id)),
        forks=tuple(uow.timelines.of_plan(plan_id)),
    )


class _Standing(Struct, frozen=True, kw_only=True):
    """What counts of a plan, and the index of the last step that was begun."""

    decisions: tuple[Decision, ...]
    last: int


def _standing(uow: UnitOfWork, plan_id: PlanId) -> _Standing:
    plan = uow.plans.get(plan_id)
    counting = (item for item in uow.decisions.of_plan(plan_id) if not item.superseded)
    last = plan.last_completed_step + (1 if plan.mid_step else 0)
    return _Standing(decisions=tuple(counting), last=last)


def _went(past: PlanPast, target_id: GroupId) -> Way | None:
    """Which way the last rollback led, if it was one to this group."""
    kept = [g for g in past.groups if g.reason is CheckpointReason.BEFORE_ROLLBACK]
    target = next((g for g in past.groups if g.group_id == target_id), None)
    if target is None or not kept or kept[-1].source != "rollback":
        return None
    if all(item.metadata.get("target") != target_id for item in kept[-1].checkpoints):
        return None
    return Way.BACK if leads_back(past, target, kept[-1]) else Way.FORWARD
