"""Undo and redo of an apply over fakes: all of the project moves, or nothing, whatever happens."""

from datetime import timedelta

import pytest
from fake_sandboxes import MemorySandboxes
from fakes import Killed
from service_world import BASE, CODE, DOCS, ServiceWorld

from cleveragents.application.ports.runtime import Workspace
from cleveragents.application.services.apply.moves import ApplyMoves, MovedApply
from cleveragents.application.services.rollback.undo_service import Way
from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.apply import PreparedApply
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyEditsKeptError,
    ApplyRefusedError,
    ApplyUndoneError,
    DeclinedError,
    InterruptedMoveError,
    MachineError,
    MoveBlockedError,
    MovePendingError,
    NothingToRedoError,
    NothingToUndoError,
    PlanError,
)
from cleveragents.domain.resource import OwnState, PlanResource

AFTER = {**BASE, "one.txt": "of the plan"}
PLACES = ("/projects/code", "/projects/docs")


class _Movable(MemorySandboxes):
    """Those whose projects can go to either side."""

    def prepare_move(self, resource: PlanResource, way: OwnState, side: ApplySide) -> PreparedApply:
        self._faults.reach(f"prepare move {resource.name}")
        files = dict(BASE if side is ApplySide.BEFORE else AFTER)
        # Every path has a text on both sides: the fake knows a way by the files it leads to.
        files.setdefault("one.txt", "")
        return PreparedApply(
            resource_id=resource.resource_id, token={"files": files}, diff=self.diff(resource)
        )


class MoveWorld(ServiceWorld):
    """Two projects to which a plan was applied."""

    def __init__(self) -> None:
        super().__init__(resources=(CODE, DOCS))
        self.run()
        movable = _Movable(self.disk, self.faults, self.snapshots)
        workspace = Workspace(sandboxes=movable, snapshots=self.snapshots)
        self.moves = ApplyMoves(self.runtime, workspace)
        for place in PLACES:
            self.disk.projects[place] = dict(AFTER)
        now = self.clock.now()
        self.put(
            AppliedChange(
                plan_id=self.plan_id,
                side=ApplySide.AFTER,
                until=now + timedelta(days=1),
                changed_at=now,
                ways={"code": {"files": AFTER}, "docs": {"files": AFTER}},
            )
        )

    def put(self, change: AppliedChange) -> None:
        with self.database() as uow:
            uow.applied.put(change)
            uow.commit()

    @property
    def change(self) -> AppliedChange:
        with self.database.reading() as uow:
            found = uow.applied.find(self.plan_id)
        assert found is not None
        return found

    @property
    def texts(self) -> list[str]:
        return [self.disk.projects[place]["one.txt"] for place in PLACES]

    def go(self, way: Way = Way.BACK, *, yes: bool = True) -> MovedApply:
        return self.moves.go(self.plan_id, way, 1, lambda _: yes)


@pytest.fixture
def world() -> MoveWorld:
    return MoveWorld()


def test_all_of_it_goes_back_and_comes_again(world: MoveWorld) -> None:
    assert world.go().way is Way.BACK
    assert (world.texts, world.change.side) == (["", ""], ApplySide.BEFORE)
    with pytest.raises(ApplyUndoneError):
        world.go()
    assert world.go(Way.FORWARD).way is Way.FORWARD
    assert (world.texts, world.change.side) == (["of the plan"] * 2, ApplySide.AFTER)
    with pytest.raises(NothingToRedoError):
        world.go(Way.FORWARD)


def test_who_says_no_changes_nothing(world: MoveWorld) -> None:
    before = world.change
    with pytest.raises(DeclinedError):
        world.go(yes=False)
    assert (world.texts, world.change) == (["of the plan"] * 2, before)


@pytest.mark.parametrize(
    ("way", "error"), [(Way.BACK, NothingToUndoError), (Way.FORWARD, NothingToRedoError)]
)
def test_an_apply_is_one_change(world: MoveWorld, way: Way, error: type[PlanError]) -> None:
    with pytest.raises(error):
        world.moves.preview(world.plan_id, way, 2)


def test_all_that_is_in_the_way_is_told_at_once(world: MoveWorld) -> None:
    for name in ("code", "docs"):
        conflict = ApplyConflictError(world.plan_id, name, ["one.txt"], "changed since then")
        world.faults.fail(f"prepare move {name}", conflict)
    with pytest.raises(MoveBlockedError) as caught:
        world.go()
    for name in ("code", "docs"):
        assert f"{name}: one.txt (changed since then)" in caught.value.message
    assert world.change.heading is None


def _conflict(world: MoveWorld) -> PlanError:
    return ApplyConflictError(world.plan_id, "docs", ["one.txt"], "changed meanwhile")


def _edits(world: MoveWorld) -> PlanError:
    return ApplyEditsKeptError(world.plan_id, "docs is locked", ["one.txt"])


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        (lambda _: KeyboardInterrupt(), InterruptedMoveError),
        (_conflict, MoveBlockedError),
        (_edits, MoveBlockedError),
        (lambda _: ApplyRefusedError("docs is locked", "wait"), ApplyRefusedError),
        (lambda _: OSError("no room"), MachineError),
    ],
)
def test_what_stops_it_halfway_takes_all_of_it_back(
    world: MoveWorld, cause, error: type[PlanError]
) -> None:
    world.faults.fail("kept docs", cause(world))
    with pytest.raises(error):
        world.go()
    assert world.texts == ["of the plan"] * 2
    assert (world.change.side, world.change.heading) == (ApplySide.AFTER, None)
    assert world.go().way is Way.BACK


def test_what_somebody_typed_meanwhile_stays_and_is_named(world: MoveWorld) -> None:
    def typed(_: object) -> bool:
        world.disk.kept["/projects/docs"] = dict(AFTER)
        world.disk.projects["/projects/docs"]["one.txt"] = "typed"
        return True

    with pytest.raises(MoveBlockedError, match=r"docs: one.txt \(changed meanwhile\)"):
        world.moves.go(world.plan_id, Way.BACK, 1, typed)
    assert world.texts == ["of the plan", "typed"]
    assert world.change.heading is None


def test_what_cannot_be_taken_back_yet_is_pending_and_finished_later(world: MoveWorld) -> None:
    world.faults.fail("kept docs", OSError("no room"))
    world.faults.fail("take back code", ApplyRefusedError("code is locked", "wait"))
    with pytest.raises(MovePendingError) as caught:
        world.go()
    assert "`code`: code is locked" in caught.value.message
    assert world.change.heading is ApplySide.BEFORE
    moved = world.go()
    assert (moved.finished, moved.way, world.texts) == (True, Way.BACK, ["", ""])


def test_the_other_way_finishes_what_a_kill_left_first(world: MoveWorld) -> None:
    world.faults.fail("carried out code", Killed())
    with pytest.raises(Killed):
        world.go()
    world.faults.revive()
    assert world.change.heading is ApplySide.BEFORE
    moved = world.go(Way.FORWARD)
    assert (moved.finished, moved.way) == (False, Way.FORWARD)
    assert (world.texts, world.change.side) == (["of the plan"] * 2, ApplySide.AFTER)


def test_what_is_not_let_go_of_yet_waits_for_the_next_time(world: MoveWorld) -> None:
    world.put(world.change.free())
    with world.locks.hold(world.plan_id, "test"):
        assert world.keeping.expire() == 0
    assert world.keeping.expire() == 1
