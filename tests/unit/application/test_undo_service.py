"""An undo that was cut off counts as done once it is finished: said again, it goes no further."""

from collections.abc import Iterator

import pytest
from rollback_world import world
from service_world import ServiceWorld

from cleveragents.application.services.rollback.undo_service import (
    StepsMoved,
    UndoService,
    Way,
)

__all__ = ["world"]


def undo_service(world: ServiceWorld) -> UndoService:
    return UndoService(world.database, world.rollbacks, world.checkpoints)


def go(world: ServiceWorld, way: Way, changes: int = 1) -> StepsMoved:
    return undo_service(world).go(world.plan_id, way, changes, lambda _: True)


def cut_off(world: ServiceWorld, way: Way) -> Iterator[int]:
    """The moments at which the intent is on record, and the rest is not done."""
    for number in range(1, 200):
        if not world.kill_at(number, lambda: go(world, way)):
            return
        if world.plan.rollback_target is not None:
            yield number
            return


@pytest.mark.parametrize(("way", "other"), [(Way.BACK, Way.FORWARD), (Way.FORWARD, Way.BACK)])
def test_said_again_it_is_finished_and_goes_no_further(
    world: ServiceWorld, way: Way, other: Way
) -> None:
    if way is Way.FORWARD:
        go(world, Way.BACK, 2)
    before = world.all_files()
    go(world, way)
    meant = world.all_files()
    go(world, other)
    assert world.all_files() == before

    assert list(cut_off(world, way))
    go(world, way)

    assert world.all_files() == meant
    assert world.plan.rollback_target is None


def test_the_other_word_finishes_it_and_takes_it_back(world: ServiceWorld) -> None:
    before = world.all_files()
    assert list(cut_off(world, Way.BACK))

    go(world, Way.FORWARD)

    assert world.all_files() == before
    assert world.plan.rollback_target is None


def test_a_preview_names_where_the_one_that_was_cut_off_leads_to(world: ServiceWorld) -> None:
    assert list(cut_off(world, Way.BACK))
    files, target = world.all_files(), world.plan.rollback_target

    foreseen = undo_service(world).preview(world.plan_id, Way.BACK, 1)

    assert foreseen.preview.group.group_id == target
    assert (world.all_files(), world.plan.rollback_target) == (files, target)
