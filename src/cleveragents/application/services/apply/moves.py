"""`undo` and `redo` of an apply: the project goes to its other side, all of it or nothing.

The order is that of an apply: what is in the way is found first, everywhere; the person is asked;
the intent is stored; each resource changes, with what it was kept beside it; one record says where
the project stands now; what is not needed any more goes. A kill leaves the intent: the next `undo`
or `redo` finishes it, or takes it back (ADR 0098).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from cleveragents.application.ports.runtime import (
    Runtime,
    Workspace,
)
from cleveragents.application.services.rollback.undo_service import Way
from cleveragents.domain.applied import AppliedChange, ApplySide, Ways
from cleveragents.domain.apply import PreparedApply, intended
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyEditsKeptError,
    ApplyNotKeptError,
    ApplyUndoneError,
    DeclinedError,
    InterruptedMoveError,
    MachineError,
    MoveBlockedError,
    MovePendingError,
    NothingToRedoError,
    NothingToUndoError,
    PlanError,
    TimelineClosedError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.resource import PlanResource

_TO = {Way.BACK: ApplySide.BEFORE, Way.FORWARD: ApplySide.AFTER}
_WORDS = {side: way for way, side in _TO.items()}


class MoveQuestion(Struct, frozen=True, kw_only=True):
    """What a person is asked before the project changes; `targets` say how, by resource."""

    plan: Plan
    way: Way
    diffs: Mapping[str, ResourceDiff]
    targets: Mapping[str, str]
    until: datetime


class MovedApply(Struct, frozen=True, kw_only=True):
    """Where the project stands now. What an interrupted one had planned is not told again: it has
    no `diffs`, and is `finished` only."""

    plan: Plan
    way: Way
    diffs: Mapping[str, ResourceDiff]
    targets: Mapping[str, str]
    until: datetime
    finished: bool = False


Confirm = Callable[[MoveQuestion], bool]
Prepared = Mapping[str, PreparedApply]


class _Move(Struct, frozen=True, kw_only=True):
    """A plan with what is on record of its apply; databases last."""

    plan: Plan
    change: AppliedChange
    resources: Sequence[PlanResource]


class ApplyMoves(Struct, frozen=True):
    _runtime: Runtime
    _workspace: Workspace

    def concerns(self, plan_id: PlanId) -> bool:
        """Whether to undo or redo anything of this plan is about its apply."""
        with self._runtime.unit_of_work.reading() as uow:
            return uow.plans.get(plan_id).state is State.APPLIED

    def go(self, plan_id: PlanId, way: Way, changes: int, confirm: Confirm) -> MovedApply:
        _refuse_many(plan_id, way, changes)
        with self._runtime.locks.hold(plan_id, way.value):
            found = self._read(plan_id)
            if found.change.heading is not None:
                moved = self._carry_out(found, _named(found.resources, found.change.under_way))
                if moved.way is way:
                    return moved
                found = self._read(plan_id)
            # A kill after the last one was on record may have left what it did not need any more.
            self._settle(found.resources, _named(found.resources, found.change.ways))
            prepared = self._prepare(found, way)
            question = _question(found, way, prepared)
            if not confirm(question):
                raise DeclinedError(f"the {way.value}")
            begun = self._begin(found, prepared)
            return self._carry_out(begun, prepared, question)

    def preview(self, plan_id: PlanId, way: Way, changes: int) -> MoveQuestion:
        """What `go` would do now; nothing is changed."""
        _refuse_many(plan_id, way, changes)
        found = self._read(plan_id)
        return _question(found, way, self._prepare(found, way))

    def _read(self, plan_id: PlanId) -> _Move:
        with self._runtime.unit_of_work.reading() as uow:
            plan, change = uow.plans.get(plan_id), uow.applied.find(plan_id)
            resources = uow.resources.of_plan(plan_id)
        if change is None or not change.can_move(self._runtime.clock.now()):
            raise (TimelineClosedError if plan.action.in_place else ApplyNotKeptError)(plan_id)
        # Databases last: a failed write there must find the rest still easy to put back.
        moved = [r for r in resources if r.name in change.ways]
        in_order = sorted(moved, key=lambda resource: not resource.kind.is_folder)
        return _Move(plan=plan, change=change, resources=in_order)

    def _prepare(self, found: _Move, way: Way) -> Prepared:
        """Raises MoveBlockedError, which names all that is in the way in all resources."""
        plan_id, side = found.plan.plan_id, _TO[way]
        if found.change.side is side:
            undone = side is ApplySide.BEFORE
            raise ApplyUndoneError(plan_id) if undone else NothingToRedoError(plan_id, 0)
        prepared: dict[str, PreparedApply] = {}
        blocked: list[str] = []
        for resource in found.resources:
            token = found.change.ways[resource.name]
            try:
                prepared[resource.name] = self._workspace.sandboxes.prepare_move(
                    resource, token, side
                )
            except ApplyConflictError as error:
                blocked += _blockers(error)
        if blocked:
            raise MoveBlockedError(plan_id, blocked, way.value)
        return prepared

    def _begin(self, found: _Move, prepared: Prepared) -> _Move:
        # Intent before effect: with the ways stored, a killed one is finished or taken back.
        change = found.change.begin({name: item.token for name, item in prepared.items()})
        self._workspace.sandboxes.make_durable(found.resources)
        self._save(change)
        return _Move(plan=found.plan, change=change, resources=found.resources)

    def _carry_out(
        self, found: _Move, prepared: Prepared, question: MoveQuestion | None = None
    ) -> MovedApply:
        try:
            for resource in found.resources:
                self._workspace.sandboxes.carry_out(resource, prepared[resource.name])
            self._workspace.sandboxes.make_durable(found.resources)
        except (PlanError, OSError, KeyboardInterrupt) as cause:
            raise self._given_up(found, prepared, cause) from cause
        change = found.change.arrived(self._runtime.clock.now())
        self._save(change)
        self._settle(found.resources, prepared)
        return MovedApply(
            plan=found.plan,
            way=_WORDS[change.side],
            diffs=question.diffs if question else {},
            targets=question.targets if question else {},
            until=change.until,
            finished=question is None,
        )

    def _given_up(self, found: _Move, prepared: Prepared, cause: BaseException) -> PlanError:
        """All of the project becomes what it was. Raises MovePendingError if that fails."""
        word = _WORDS[found.change.heading or ApplySide.BEFORE].value
        error = _reason(found.plan.plan_id, word, cause)
        kept = self._take_back(found, prepared, word, error)
        # Before the record: as long as the intent is stored, this is repeated after a kill.
        for resource in found.resources:
            self._workspace.sandboxes.withdraw(resource, prepared[resource.name])
        self._workspace.sandboxes.make_durable(found.resources)
        self._save(found.change.withdrawn())
        return MoveBlockedError(found.plan.plan_id, kept, word) if kept else error

    def _take_back(
        self, found: _Move, prepared: Prepared, word: str, error: PlanError
    ) -> list[str]:
        kept: list[str] = []
        obstacles: list[str] = []
        for resource in reversed(found.resources):
            try:
                names = self._workspace.sandboxes.revert(resource, prepared[resource.name])
            except PlanError as problem:
                obstacles.append(f"`{resource.name}`: {problem.message}")
            else:
                kept += [f"{resource.name}: {name} (changed meanwhile)" for name in names]
        if obstacles:
            told = "; ".join(obstacles)
            raise MovePendingError(found.plan.plan_id, error.message, told, word) from error
        return kept

    def _settle(self, resources: Sequence[PlanResource], prepared: Prepared) -> None:
        for resource in resources:
            self._workspace.sandboxes.settle(resource, prepared[resource.name])

    def _save(self, change: AppliedChange) -> None:
        with self._runtime.unit_of_work() as uow:
            uow.applied.put(change)
            uow.commit()


def _refuse_many(plan_id: PlanId, way: Way, changes: int) -> None:
    """What was done before the apply is over with it."""
    if changes > 1:
        raise NothingToUndoError(plan_id, 1) if way is Way.BACK else NothingToRedoError(plan_id, 1)


def _named(resources: Sequence[PlanResource], ways: Ways) -> Prepared:
    return {r.name: intended(r.resource_id, ways[r.name]) for r in resources}


def _question(found: _Move, way: Way, prepared: Prepared) -> MoveQuestion:
    return MoveQuestion(
        plan=found.plan,
        way=way,
        diffs={name: item.diff for name, item in prepared.items()},
        targets={name: item.target for name, item in prepared.items()},
        until=found.change.until,
    )


def _blockers(error: ApplyConflictError) -> list[str]:
    return [f"{error.resource}: {name} ({error.why})" for name in error.files]


def _reason(plan_id: PlanId, word: str, cause: BaseException) -> PlanError:
    if isinstance(cause, KeyboardInterrupt):
        return InterruptedMoveError(plan_id, word)
    if isinstance(cause, ApplyConflictError):
        return MoveBlockedError(plan_id, _blockers(cause), word)
    if isinstance(cause, ApplyEditsKeptError):
        return MoveBlockedError(plan_id, [cause.message], word)
    return cause if isinstance(cause, PlanError) else MachineError(str(cause))
