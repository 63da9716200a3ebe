"""A resource of a plan knows how far its sandbox is, and which snapshots it cannot do without."""

from domain_builders import OTHER_PLAN, a_resource

from cleveragents.domain.resource import SandboxStatus
from cleveragents.domain.resource_kinds import FS_DIRECTORY, SQLITE


def test_a_sandbox_that_was_made_begins_at_its_first_boundary() -> None:
    made = a_resource(status=SandboxStatus.PENDING, boundary=None).ready("first")

    assert made.status is SandboxStatus.READY
    assert (made.base_snapshot, made.boundary) == ("first", "first")


def test_moving_the_boundary_leaves_the_beginning_where_it_was() -> None:
    moved = a_resource().ready("first").at_boundary("second")

    assert (moved.base_snapshot, moved.boundary) == ("first", "second")
    assert moved.needed_snapshots() == {"first", "second"}


def test_without_a_sandbox_no_snapshot_is_needed() -> None:
    assert a_resource(boundary=None).needed_snapshots() == frozenset()


def test_an_apply_that_has_begun_needs_its_snapshots_until_it_is_withdrawn() -> None:
    resource = a_resource(details={"own": "kept"}).ready("first")

    intending = resource.intending({"commit": "abc"}, {"second", "first", "another"})

    assert intending.intent == {"commit": "abc"}
    assert intending.needed_snapshots() == {"first", "second", "another"}
    assert intending.details["own"] == "kept"
    assert intending.withdrawn() == resource
    assert resource.intent is None


def test_a_removed_sandbox_is_only_marked() -> None:
    assert a_resource().removed().status is SandboxStatus.REMOVED


def test_a_git_checkout_is_worked_on_in_a_clone_and_other_things_in_a_copy() -> None:
    assert a_resource().kind.strategy == "git clone"
    assert a_resource(type=FS_DIRECTORY.type).kind.strategy == "copy"


def test_commands_work_in_a_folder_and_in_the_folder_around_a_file() -> None:
    checkout = a_resource(sandbox_path="/data/plan/code").address
    assert (checkout.value, checkout.folder) == ("/data/plan/code", "/data/plan/code")
    assert checkout.writable == ("/data/plan/code", "/data/plan/code.git")
    folder = a_resource(type=FS_DIRECTORY.type, sandbox_path="/data/plan/docs").address
    assert folder.writable == ("/data/plan/docs",)
    database = a_resource(type=SQLITE.type, sandbox_path="/data/plan/db/app.db").address
    assert (database.value, database.folder) == ("/data/plan/db/app.db", "/data/plan/db")
    assert database.writable == ("/data/plan/db",)


def test_a_sandbox_that_is_missing_is_only_shown_so() -> None:
    assert a_resource().missing() == a_resource(status=SandboxStatus.MISSING)


def test_a_childs_resource_begins_with_nothing_of_what_became_of_its_parents() -> None:
    parents = a_resource(exclude=("target/",), uncounted=7, branched_at="b", origin="o")

    child = parents.ready("first").intending({"commit": "abc"}, {"second"}).child_of(OTHER_PLAN)

    assert child == a_resource(
        exclude=("target/",), kept_with=OTHER_PLAN, status=SandboxStatus.PENDING, boundary=None
    )
