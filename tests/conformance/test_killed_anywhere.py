"""Every call of an adapter, killed at each thing it does that lasts, and made again: as if never.

Each moment is one at which a kill leaves something else than at any other (`kill_points`).
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from resource_world import ResourceWorld
from tests.support.kill_points import kill_points, killed, share

from cleveragents.domain.action import MergeStrategy

pytestmark = pytest.mark.usefixtures("unmeasured")

Call = Callable[[], object]


def survives(world: ResourceWorld, call: Call, holds: Callable[[], bool]) -> None:
    """`call` is made as by a new process each time; `holds` says whether all is as it should be
    once it was made to its end."""
    saved = world.save()

    def work() -> None:
        world.new_process()
        call()

    points = kill_points(work, watched=world.watched)
    assert points
    for point in share(points, 0, 1):
        world.reset(saved)
        killed(work, point)
        world.new_process()
        call()
        assert holds(), point


def test_a_creation_that_was_killed_is_made_again(world: ResourceWorld) -> None:
    resource = world.planned()
    survives(
        world,
        lambda: world.sandboxes.create(resource),
        lambda: world.state(resource) == world.project,
    )


def test_a_capture_that_was_killed_is_made_again(world: ResourceWorld) -> None:
    resource = world.ready()
    world.case.change(Path(resource.sandbox_path), 1)
    state, first = world.state(resource), resource.boundary or ""

    def holds() -> bool:
        newest = world.snapshots.capture(resource).ref
        world.snapshots.restore(resource, first)
        back = world.state(resource) == world.project
        world.snapshots.restore(resource, newest)
        return back and world.state(resource) == state

    survives(world, lambda: world.snapshots.capture(resource), holds)


def test_a_restore_that_was_killed_is_made_again(world: ResourceWorld) -> None:
    resource = world.ready()
    worked = world.work(resource, 1)
    state = world.state(resource)

    def holds() -> bool:
        back = world.state(resource) == world.project
        world.snapshots.restore(resource, worked.boundary or "")
        return back and world.state(resource) == state

    survives(world, lambda: world.snapshots.restore(resource, resource.boundary or ""), holds)


def test_a_branch_that_was_killed_is_made_again(world: ResourceWorld) -> None:
    parent = world.work(world.ready(), 1)
    child = world.child_of(parent)
    state = world.state(parent)
    survives(
        world,
        lambda: world.sandboxes.branch(parent, child),
        lambda: world.state(child) == state == world.state(parent),
    )


def test_a_merge_that_was_killed_is_made_again_from_the_boundary(world: ResourceWorld) -> None:
    """Nothing of a merge is recorded: the parent goes back first, as services have it."""
    parent = world.work(world.ready(), 1)
    child = world.work(world.branched(parent), 2)
    wanted = world.state(child)

    def merge() -> None:
        world.snapshots.restore(parent, parent.boundary or "")
        prepared = world.merges.prepare(parent, child, MergeStrategy.GIT_THREE_WAY)
        world.merges.carry_out(parent, child, prepared)

    survives(world, merge, lambda: world.state(parent) == wanted)


def test_an_apply_that_was_killed_is_finished(world: ResourceWorld) -> None:
    resource = world.work(world.ready(), 1)
    prepared = world.prepare(resource)
    survives(
        world,
        lambda: world.sandboxes.carry_out(resource, prepared),
        lambda: world.project == world.state(resource),
    )


def test_an_apply_that_was_killed_can_be_taken_back(world: ResourceWorld) -> None:
    before = world.project
    resource = world.work(world.ready(), 1)
    prepared = world.prepare(resource)
    saved = world.save()

    def work() -> None:
        world.new_process()
        world.sandboxes.carry_out(resource, prepared)

    for point in share(kill_points(work, watched=world.watched), 0, 1):
        world.reset(saved)
        killed(work, point)
        world.new_process()
        assert world.sandboxes.revert(resource, prepared) == (), point
        assert world.project == before, point


def test_a_taking_back_that_was_killed_is_finished(world: ResourceWorld) -> None:
    before = world.project
    resource = world.work(world.ready(), 1)
    prepared = world.prepare(resource)
    world.sandboxes.carry_out(resource, prepared)
    survives(
        world,
        lambda: world.sandboxes.revert(resource, prepared),
        lambda: world.project == before,
    )
