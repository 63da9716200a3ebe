"""The user's own tree as a sandbox: nothing of it is made, removed or replaced unasked."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace
from own_tree import PLAN, OwnTree

from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    ApplyRefusedError,
    InPlaceRefusedError,
    ProjectMissingError,
    RepositoryBusyError,
    ResourceError,
    RestoreFailedError,
    SandboxError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import Rebuilding
from cleveragents.infrastructure.sandbox.in_place import git_locking
from cleveragents.infrastructure.sandbox.in_place.marker import occupant_of

OTHER = PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAX")


@pytest.fixture
def tree(tmp_path: Path) -> OwnTree:
    return OwnTree(tmp_path)


# --- as a sandbox -------------------------------------------------------------------------------


def test_a_timeline_notes_whose_it_is_and_leaves_the_tree(tree: OwnTree) -> None:
    trees, before = tree.adapter.sandbox, sorted(tree.path.iterdir())
    trees.create(tree.resource)
    found = occupant_of(str(tree.path))

    assert found is not None
    assert found.plan_id == PLAN
    assert trees.files_there(tree.resource) == 0
    assert trees.secure(tree.resource)
    assert trees.has_repository(tree.resource)
    assert trees.left_behind(tree.resource) == ()
    trees.remove_copy(tree.resource)
    assert occupant_of(str(tree.path)) is None
    assert sorted(tree.path.iterdir()) == before


def test_where_no_note_can_be_written_nothing_is_begun(tree: OwnTree) -> None:
    shutil.rmtree(tree.path)
    tree.path.write_text("a file by now")

    with pytest.raises(SandboxError, match="cannot be worked on in place"):
        tree.adapter.sandbox.create(tree.resource)


def test_a_tree_that_is_gone_or_somebody_elses_is_not_worked_on(tree: OwnTree) -> None:
    trees = tree.adapter.sandbox
    trees.create(replace(tree.resource, plan_id=OTHER))

    with pytest.raises(InPlaceRefusedError, match="by another timeline"):
        trees.check(tree.resource)
    trees.release(tree.resource)
    assert occupant_of(str(tree.path)) is not None
    tree.path.rename(tree.top / "moved")
    with pytest.raises(ProjectMissingError):
        trees.check(tree.resource)
    trees.release(tree.resource)
    assert (tree.top / "moved/a.txt").exists()


def test_it_is_never_made_again(tree: OwnTree) -> None:
    how = Rebuilding(snapshot=tree.capture())

    with pytest.raises(InPlaceRefusedError, match="is not made again"):
        tree.adapter.sandbox.make_room(tree.resource, how)
    with pytest.raises(RestoreFailedError, match="not made again"):
        tree.engine.rebuild(tree.resource, how)
    with pytest.raises(RestoreFailedError, match="the user's own tree"):
        tree.engine.restore(tree.resource, how.snapshot)
    with pytest.raises(RestoreFailedError, match="the user's own tree"):
        tree.engine.restore_paths(tree.resource, how.snapshot, ["a.txt"])
    assert (tree.path / "a.txt").read_text() == "one\n"


def test_it_has_no_children(tree: OwnTree) -> None:
    with pytest.raises(ResourceError, match="has no children"):
        _ = tree.adapter.merge
    with pytest.raises(ResourceError, match="has no children"):
        _ = tree.adapter.branches


def test_what_has_changed_is_told_from_snapshots(tree: OwnTree) -> None:
    first = tree.capture()
    tree.sh("echo three > new.txt")
    second = tree.capture()
    tree.sh("rm a.txt")

    def paths(diff: ResourceDiff) -> list[str]:
        return sorted(found.path for found in diff.files)

    adapter = tree.adapter
    assert paths(adapter.diff_between(tree.resource, first, second)) == ["new.txt"]
    assert paths(adapter.diff_since(tree.resource, second)) == ["a.txt"]
    assert paths(adapter.sandbox.diff(tree.resource.ready(first))) == ["a.txt", "new.txt"]
    assert paths(adapter.sandbox.diff(tree.resource)) == []
    assert paths(adapter.sandbox.applied_diff(tree.resource, "done")) == []
    assert adapter.only_here(tree.resource) == ()


# --- its end ------------------------------------------------------------------------------------


def test_an_apply_changes_nothing_and_cannot_be_undone_or_go_to_a_branch(tree: OwnTree) -> None:
    done, before = tree.adapter.applier, tree.sh("git status --short; git rev-parse HEAD")
    prepared = done.prepare_apply(tree.resource, ApplyOptions(message="m"))

    assert done.carry_out(tree.resource, prepared) == "done"
    assert done.revert(tree.resource, prepared) == ()
    assert done.way_of(tree.resource, prepared) is None
    assert done.kept_bytes(tree.resource) == 0
    done.finish(tree.resource, prepared)
    done.withdraw(tree.resource, prepared)
    assert tree.sh("git status --short; git rev-parse HEAD") == before
    with pytest.raises(InPlaceRefusedError, match="no branch to make"):
        done.prepare_apply(tree.resource, ApplyOptions(message="m", branch="b"))
    with pytest.raises(ApplyRefusedError, match="nothing was applied"):
        done.prepare_move(tree.resource, {}, ApplySide.BEFORE)


# --- where it is --------------------------------------------------------------------------------


def test_a_tree_that_was_moved_is_found_by_its_note(tree: OwnTree) -> None:
    place, new = tree.adapter.location, str(tree.top / "moved")
    tree.adapter.sandbox.create(tree.resource)
    assert place.is_grounded(tree.resource)
    assert not place.is_surely_at(tree.resource, str(tree.path))
    tree.path.rename(new)

    near = list(place.near(tree.resource, f"{new}/src"))

    assert near[:2] == [f"{new}/src", new]
    assert near[-1] == new
    assert place.is_surely_at(tree.resource, new)
    assert not place.is_at(tree.resource, f"{new}/src")
    moved = place.moved(tree.resource, new)
    assert (moved.location, moved.sandbox_path) == (new, new)
    assert moved.details["git_dir"] == f"{new}/.git"
    assert list(place.written_places(moved)) == [new]


def test_a_folder_that_was_moved_has_no_repository_and_perhaps_no_parent(tmp_path: Path) -> None:
    tree = OwnTree(tmp_path, repository=False)
    gone = replace(tree.resource, location=str(tmp_path / "none/project"))

    place = tree.adapter.location

    assert list(place.near(gone, "/")) == ["/"]
    assert "git_dir" not in place.moved(gone, str(tree.path)).details


# --- a way back ---------------------------------------------------------------------------------


def test_a_busy_index_refuses_and_one_of_ours_does_not(
    tree: OwnTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_locking, "_PAUSE_SECONDS", 0)
    lock = tree.gitdir / "index.lock"
    first = tree.capture()
    tree.sh("echo x > a.txt; git commit -qam second")
    lock.write_text("")

    with pytest.raises(RepositoryBusyError):
        tree.adapter.sandbox.check(tree.resource)
    with pytest.raises(RepositoryBusyError):
        tree.back_to(first)
    assert not (tree.gitdir / "cleveragents-index").exists()
    lock.write_text("cleveragents\n")
    tree.adapter.sandbox.check(tree.resource)
    tree.back_to(first)
    assert not lock.exists()
    assert (tree.path / "a.txt").read_text() == "one\n"


def test_a_new_branch_goes_an_old_one_comes_and_head_may_be_a_commit(tree: OwnTree) -> None:
    tree.sh("git branch old; git checkout -q --detach")
    first, refs = tree.capture(), tree.sh("git for-each-ref refs/heads; cat .git/HEAD")
    tree.sh("git checkout -q -b new; echo x > a.txt; git commit -qam x; git branch -D old")

    tree.back_to(first)

    assert tree.sh("git for-each-ref refs/heads; cat .git/HEAD") == refs
    assert tree.sh("git status --short") == ""


def test_a_repository_without_an_index_is_one_again(tree: OwnTree) -> None:
    tree.sh("rm .git/index")
    first = tree.capture()
    tree.sh("git add -A; git update-ref refs/tags/t HEAD")

    tree.back_to(first)

    assert not (tree.gitdir / "index").exists()
    assert tree.sh("git tag") == ""


def test_a_merge_in_progress_comes_back_and_goes_again(tree: OwnTree) -> None:
    plain = tree.capture()
    tree.sh(
        "git checkout -q -b side; echo side > a.txt; git commit -qam side; git checkout -q main;"
        " echo main > a.txt; git commit -qam main; git merge -q side || true"
    )
    merging, told = tree.capture(), (tree.gitdir / "MERGE_HEAD").read_text()

    tree.back_to(plain)
    assert not (tree.gitdir / "MERGE_HEAD").exists()
    assert tree.sh("git branch --list") == "* main"
    tree.back_to(merging)
    assert (tree.gitdir / "MERGE_HEAD").read_text() == told
    assert "<<<<<<<" in (tree.path / "a.txt").read_text()


def test_a_stash_comes_back_with_its_log_and_goes_with_it(tree: OwnTree) -> None:
    first = tree.capture()
    tree.sh("echo x > a.txt; git stash -q; echo y > a.txt; git stash -q")
    second, stashed = tree.capture(), tree.sh("git stash list --format=%H")

    tree.back_to(first)
    assert tree.sh("git stash list") == ""
    tree.back_to(second)
    assert tree.sh("git stash list --format=%H") == stashed
    tree.sh("git stash drop -q")
    tree.back_to(second)
    assert tree.sh("git stash list --format=%H") == stashed


def test_a_repository_that_was_lost_is_named_and_files_come(tree: OwnTree) -> None:
    first = tree.capture()
    tree.sh("echo x > a.txt; rm -rf .git")

    done = tree.back_to(first)

    assert done.left == ("the repository: there is none now",)
    assert (tree.path / "a.txt").read_text() == "one\n"


def test_what_others_moved_after_the_last_group_is_left_and_named(tree: OwnTree) -> None:
    first = tree.capture()
    tree.sh("echo x > a.txt; git add a.txt")
    last = tree.capture()
    tree.sh("git branch theirs; echo y > c.txt; git add c.txt; git commit -qm theirs")

    done = tree.back_to(first, last, keep=True)

    assert "refs/heads/theirs: moved by others" in done.left
    assert any(line.startswith("HEAD, the index and refs/heads/main") for line in done.left)
    assert "c.txt" in done.left
    assert (tree.path / "a.txt").read_text() == "one\n"
    assert tree.sh("git log -1 --format=%s") == "theirs"


def test_settings_that_are_others_are_told_and_stay(tree: OwnTree) -> None:
    first = tree.capture()
    tree.sh("git config x.y z; echo x > a.txt; git commit -qam x")

    done = tree.back_to(first)

    assert any("settings or hooks" in line for line in done.notes)
    assert tree.sh("git config x.y") == "z"


def test_a_folder_that_holds_what_is_excluded_stays_for_it(tree: OwnTree) -> None:
    tree.resource = replace(tree.resource, exclude=("*.log",))
    first = tree.capture()
    tree.sh("mkdir build; echo x > build/x; echo y > build/y.log")

    done = tree.back_to(first)

    assert done.left == ()
    assert list((tree.path / "build").iterdir()) == [tree.path / "build/y.log"]


def test_a_file_in_the_way_that_is_kept_keeps_what_was_below_it(tree: OwnTree) -> None:
    first = tree.capture()
    tree.sh("rm a.txt")
    last = tree.capture()
    tree.sh("rm -r src; echo mine > src")

    done = tree.back_to(first, last, keep=True)

    assert set(done.left) >= {"src", "src/b.txt"}
    assert (tree.path / "src").read_text() == "mine\n"
    assert (tree.path / "a.txt").read_text() == "one\n"
