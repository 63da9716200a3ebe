"""What every type of resource promises, whichever it is: run on all that are registered."""

import shutil
from pathlib import Path

import pytest
from resource_world import CASES, NAME, ResourceWorld

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.action import MergeStrategy, ResourceSpec
from cleveragents.domain.errors import (
    ApplyConflictError,
    PlanError,
    ResourceError,
    SandboxMissingError,
    SnapshotDamagedError,
)
from cleveragents.domain.resource import Damage, PlanResource, Rebuilding
from cleveragents.domain.resource_kinds import POSTGRES


def test_every_type_there_is_has_a_case(world: ResourceWorld) -> None:
    assert {adapter.kind.type for adapter in world.adapters.all()} == set(CASES)


def test_a_type_without_an_adapter_is_refused(world: ResourceWorld) -> None:
    spec = ResourceSpec(name="db", type=POSTGRES.type, location="postgresql://x/y")
    with pytest.raises(ResourceError) as refused:
        world.sandboxes.inspect(spec, world.planned().plan_id, include_uncommitted=False)
    assert "which is not implemented yet" in refused.value.message
    assert "git-checkout, fs-directory, sqlite" in (refused.value.hint or "")


# --- create -------------------------------------------------------------------------------------


def test_a_sandbox_is_the_project_apart(world: ResourceWorld) -> None:
    before = world.project
    resource = world.ready()
    assert world.state(resource) == before
    world.work(resource, 1)
    assert world.state(resource) != before
    assert world.project == before


def test_making_a_sandbox_again_replaces_what_is_there(world: ResourceWorld) -> None:
    resource = world.ready()
    world.work(resource, 1)
    world.sandboxes.create(resource)
    assert world.state(resource) == world.project


def test_what_is_not_there_cannot_be_worked_on(world: ResourceWorld) -> None:
    world.location = world.location.with_name("nowhere")
    with pytest.raises(ResourceError):
        world.planned()


def test_a_removed_sandbox_leaves_nothing(world: ResourceWorld) -> None:
    resource = world.ready()
    world.sandboxes.remove(resource)
    sandboxes = world.top / "data" / "sandboxes"
    assert list(sandboxes.iterdir()) == []
    world.sandboxes.remove(resource)


# --- capture and restore ------------------------------------------------------------------------


def test_nothing_new_is_the_same_snapshot(world: ResourceWorld) -> None:
    resource = world.ready()
    again = world.snapshots.capture(resource)
    assert (again.ref, again.changes) == (resource.boundary, ())
    world.new_process()
    assert world.snapshots.capture(resource).ref == resource.boundary


def test_a_change_is_another_snapshot_and_is_named(world: ResourceWorld) -> None:
    resource = world.ready()
    world.case.change(Path(resource.sandbox_path), 1)
    found = world.snapshots.capture(resource)
    assert found.ref != resource.boundary
    assert found.changes
    assert found.footprint
    between = world.snapshots.changes_between(resource, resource.boundary or "", found.ref)
    assert sorted(between) == sorted(found.changes)


def test_every_snapshot_can_be_gone_back_to_and_forth(world: ResourceWorld) -> None:
    resource = world.ready()
    refs, states = [resource.boundary or ""], [world.state(resource)]
    for number in (1, 2, 3):
        refs.append(world.work(resource, number).boundary or "")
        states.append(world.state(resource))
    for target in (0, 2, 1, 3, 0):
        expected = world.snapshots.compare(resource, refs[target])
        done = world.snapshots.restore(resource, refs[target])
        assert world.state(resource) == states[target]
        assert sorted(done.changes) == sorted(expected)
        assert world.snapshots.compare(resource, refs[target]) == ()
        hashes = (done.snapshot, world.snapshots.known(resource, refs[target]))
        assert len({one.state_hash for one in hashes}) == 1


def test_going_back_undoes_what_nobody_captured(world: ResourceWorld) -> None:
    resource = world.work(world.ready(), 1)
    state = world.state(resource)
    world.case.change(Path(resource.sandbox_path), 2)
    world.new_process()
    world.snapshots.restore(resource, resource.boundary or "")
    assert world.state(resource) == state


def test_what_a_step_deleted_comes_back(world: ResourceWorld) -> None:
    resource = world.ready()
    state, place = world.state(resource), Path(resource.sandbox_path)
    for inner in place.iterdir() if resource.kind.is_folder else [place]:
        shutil.rmtree(inner) if inner.is_dir() and not inner.is_symlink() else inner.unlink()
    gone = world.snapshots.capture(resource)
    assert gone.changes
    world.snapshots.restore(resource, resource.boundary or "")
    assert world.state(resource) == state


def test_what_is_not_kept_is_freed_and_the_rest_stays(world: ResourceWorld) -> None:
    resource = world.ready()
    first = resource.boundary or ""
    middle = world.work(resource, 1).boundary or ""
    last = world.work(resource, 2).boundary or ""
    state = world.state(resource)
    assert world.snapshots.keep_only(resource, [first, last]) >= 0
    with pytest.raises(SnapshotDamagedError):
        world.snapshots.restore(resource, middle)
    world.snapshots.restore(resource, first)
    world.snapshots.restore(resource, last)
    assert world.state(resource) == state
    world.snapshots.forget(resource.store_id)
    with pytest.raises(PlanError):
        world.snapshots.restore(resource, first)


# --- missing and damaged ------------------------------------------------------------------------


def test_a_sandbox_that_is_gone_is_missed_and_made_again(world: ResourceWorld) -> None:
    resource = world.work(world.ready(), 1)
    state = world.state(resource)
    assert world.sandboxes.damage(resource) is None
    _drop_sandbox(world, resource)
    with pytest.raises(SandboxMissingError):
        world.sandboxes.check(resource)
    assert world.sandboxes.damage(resource) is Damage.GONE
    how = Rebuilding(snapshot=world.snapshots.newest(resource))
    world.sandboxes.make_room(resource, how)
    world.snapshots.rebuild(resource, how)
    world.sandboxes.check(resource)
    assert world.state(resource) == state
    assert world.sandboxes.damage(resource) is None


def test_a_damaged_snapshot_is_named_and_changes_nothing(world: ResourceWorld) -> None:
    resource = world.ready()
    target = world.work(resource, 1)
    snapshot = world.snapshots.known(target, target.boundary or "")
    expected = Expected(ref=snapshot.ref, state_hash=snapshot.state_hash)
    assert world.snapshots.damages(resource, [expected]) == {}
    world.work(resource, 2)
    state = world.state(resource)
    world.damage()
    assert expected in world.snapshots.damages(resource, [expected])
    with pytest.raises(SnapshotDamagedError):
        world.snapshots.verify_restorable(resource, expected.ref, expected.state_hash)
    with pytest.raises(SnapshotDamagedError):
        world.snapshots.restore(resource, expected.ref)
    assert world.state(resource) == state


def test_a_snapshot_that_never_was_is_refused(world: ResourceWorld) -> None:
    resource = world.ready()
    with pytest.raises(SnapshotDamagedError):
        world.snapshots.restore(resource, "4711")
    assert world.state(resource) == world.project


# --- branch and merge ---------------------------------------------------------------------------


def test_a_child_begins_where_its_parent_is_and_goes_its_own_way(world: ResourceWorld) -> None:
    parent = world.work(world.ready(), 1)
    child = world.branched(parent)
    state = world.state(parent)
    assert world.state(child) == state
    assert world.snapshots.compare(child, child.boundary or "") == ()
    world.work(child, 2)
    assert world.state(parent) == state
    world.sandboxes.remove(child)
    assert world.state(parent) == state
    world.sandboxes.check(parent)


def test_what_only_the_child_changed_is_merged(world: ResourceWorld) -> None:
    parent = world.work(world.ready(), 1)
    child = world.work(world.branched(parent), 2)
    prepared = world.merges.prepare(parent, child, MergeStrategy.GIT_THREE_WAY)
    assert prepared.conflicts == ()
    world.merges.carry_out(parent, child, prepared)
    assert world.state(parent) == world.state(child)


def test_what_the_child_did_not_change_is_left(world: ResourceWorld) -> None:
    parent = world.work(world.ready(), 1)
    child = world.branched(parent)
    parent = world.work(parent, 2)
    state = world.state(parent)
    prepared = world.merges.prepare(parent, child, MergeStrategy.GIT_THREE_WAY)
    world.merges.carry_out(parent, child, prepared)
    assert prepared.conflicts == ()
    assert world.state(parent) == state


def test_what_both_changed_otherwise_is_a_conflict(world: ResourceWorld) -> None:
    parent = world.work(world.ready(), 1)
    child = world.work(world.branched(parent), 2)
    parent = world.work(parent, 3)
    state = world.state(parent)
    prepared = world.merges.prepare(parent, child, MergeStrategy.GIT_THREE_WAY)
    assert [conflict.resource for conflict in prepared.conflicts][:1] == [NAME]
    assert world.state(parent) == state


# --- apply --------------------------------------------------------------------------------------


def test_a_result_reaches_the_project_and_can_be_repeated(world: ResourceWorld) -> None:
    resource = world.work(world.ready(), 1)
    assert world.sandboxes.diff(resource).files
    prepared = world.prepare(resource)
    assert prepared.diff.files
    assert world.project != world.state(resource)
    first = world.sandboxes.carry_out(resource, prepared)
    assert world.project == world.state(resource)
    assert world.sandboxes.carry_out(resource, prepared) == first
    world.sandboxes.finish(resource, prepared)
    assert world.traces() == []
    intended = resource.intending(prepared.token, prepared.snapshots)
    assert world.sandboxes.applied_diff(intended, first).files
    assert world.project == world.state(resource)


def test_a_result_is_taken_back(world: ResourceWorld) -> None:
    before = world.project
    resource = world.work(world.ready(), 1)
    prepared = world.prepare(resource)
    world.sandboxes.carry_out(resource, prepared)
    assert world.sandboxes.revert(resource, prepared) == ()
    assert world.project == before
    assert world.sandboxes.revert(resource, prepared) == ()
    world.sandboxes.finish(resource, prepared)
    assert world.traces() == []


def test_what_the_user_changed_meanwhile_is_not_overwritten(world: ResourceWorld) -> None:
    resource = world.work(world.ready(), 1)
    world.user_changes(2)
    after = world.project
    with pytest.raises(ApplyConflictError):
        world.prepare(resource)
    assert world.project == after


def test_what_the_user_changed_after_an_apply_is_not_taken_back(world: ResourceWorld) -> None:
    resource = world.work(world.ready(), 1)
    prepared = world.prepare(resource)
    world.sandboxes.carry_out(resource, prepared)
    world.user_changes(2)
    kept = world.sandboxes.revert(resource, prepared)
    assert kept
    assert "2" in str(world.project)


def test_a_plan_that_changed_nothing_applies_nothing(world: ResourceWorld) -> None:
    resource = world.ready()
    world.user_changes(2)
    after = world.project
    prepared = world.prepare(resource)
    assert prepared.diff.files == ()
    world.sandboxes.carry_out(resource, prepared)
    assert world.project == after


# --- moved --------------------------------------------------------------------------------------


def test_a_project_that_was_moved_is_worked_on_where_it_is(world: ResourceWorld) -> None:
    resource = world.work(world.ready(), 1)
    assert world.projects.is_at_home(resource)
    moved = world.top / "elsewhere"
    world.location.rename(moved)
    assert not world.projects.is_at_home(resource)
    place = world.projects.find(resource, {str(world.location): str(moved)})
    assert place == str(moved)
    resource, world.location = world.projects.relocate(resource, str(moved)), moved
    assert world.projects.is_at_home(resource)
    world.sandboxes.carry_out(resource, world.prepare(resource))
    assert world.project == world.state(resource)


def _drop_sandbox(world: ResourceWorld, resource: PlanResource) -> None:
    shutil.rmtree(world.top / "data" / "sandboxes" / resource.plan_id)
    world.new_process()
