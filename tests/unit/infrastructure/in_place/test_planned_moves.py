"""Which of a repository's state may go back, as a rule, and what becomes of a way that fails."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from own_tree import OwnTree

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.infrastructure.sandbox.in_place import git_restoring
from cleveragents.infrastructure.sandbox.in_place.git_reading import STASH, RepositoryState
from cleveragents.infrastructure.sandbox.in_place.git_restoring import Sides, planned_moves
from cleveragents.infrastructure.sandbox.in_place.git_state import CheckoutState, PlaceState
from cleveragents.infrastructure.snapshots.tree.extra_state import Before, ExtraRecord, StoredSide

MAIN = "refs/heads/main"
THEN = RepositoryState(head=f"ref: {MAIN}", refs={MAIN: "1" * 40}, index="then")


def side(state: RepositoryState) -> StoredSide:
    identity = "" if state.is_gone else state.identity
    return StoredSide(identity=identity, sandbox_ref="", hashes={}, content=lambda _name: b"")


def moves(
    now: RepositoryState,
    target: RepositoryState,
    held: RepositoryState,
    last: RepositoryState | None = None,
):
    known = side(last) if last else None
    return planned_moves(now, Sides(target=side(target), held=side(held), last=known))


# --- the rule -----------------------------------------------------------------------------------


def test_a_repository_that_was_none_then_is_left_and_named() -> None:
    gone = RepositoryState(is_gone=True)

    assert moves(THEN, gone, THEN).left == ("the repository: it is new",)
    assert moves(gone, THEN, THEN).left == ("the repository: there is none now",)
    assert moves(gone, gone, gone).left == ()
    assert not moves(THEN, gone, THEN).any


def test_an_index_that_others_have_changed_is_left() -> None:
    staged = replace(THEN, index="theirs")

    found = moves(staged, THEN, held=staged, last=THEN)

    assert found.left == ("the index: changed by others",)
    assert not found.index
    assert moves(staged, THEN, held=staged).index


def test_an_operation_that_others_have_begun_is_left() -> None:
    merging = replace(THEN, operation={"MERGE_HEAD": "hash"})

    found = moves(merging, THEN, held=merging, last=THEN)

    assert found.left == ("an operation of git in progress: begun or ended by others",)
    assert not found.any
    assert moves(merging, THEN, held=merging).operation


def test_a_branch_that_stands_for_another_is_never_moved() -> None:
    alias = replace(THEN, refs={**THEN.refs, "refs/heads/alias": f"ref: {MAIN}"})

    found = moves(alias, THEN, held=alias)

    assert found.left == ("refs/heads/alias: moved by others",)
    assert found.refs == {}


def test_a_stash_of_which_only_the_log_differs_is_put_in_order() -> None:
    stashed = replace(THEN, refs={**THEN.refs, STASH: "2" * 40}, stash_log="two")
    dropped = replace(stashed, stash_log="one")

    found = moves(dropped, stashed, held=dropped)

    assert found.refs == {STASH: ("2" * 40, "2" * 40)}
    assert found.stash_log
    assert found.left == ()


# --- a way that fails, or is odd ----------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> OwnTree:
    return OwnTree(tmp_path)


def test_what_git_refuses_is_told_and_the_lock_is_gone(
    tree: OwnTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tree.capture()
    tree.sh("git add -A; echo x > a.txt; git commit -qam x")

    def failing(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(git_restoring, "put_below", failing)
        with pytest.raises(RestoreFailedError, match="No space left"):
            tree.back_to(first)

    assert not (tree.gitdir / "index.lock").exists()
    tree.back_to(first)
    assert tree.sh("git log --format=%s; git status --short") == "base"


def test_an_older_stash_that_was_dropped_comes_back(tree: OwnTree) -> None:
    tree.sh("echo x > a.txt; git stash -q; echo y > a.txt; git stash -q")
    first, stashed = tree.capture(), tree.sh("git stash list --format=%H")
    tree.sh("git stash drop -q stash@{1}")

    tree.back_to(first)

    assert tree.sh("git stash list --format=%H") == stashed


def test_a_rebase_in_progress_comes_back_with_its_folder(tree: OwnTree) -> None:
    tree.sh(
        "git checkout -q -b side; echo side > a.txt; git commit -qam side; git checkout -q main;"
        " echo main > a.txt; git commit -qam main; git rebase -q side 2>&1 || true"
    )
    folder = tree.gitdir / "rebase-merge"
    first, files = tree.capture(), {path.name for path in folder.iterdir()}
    tree.sh("git rebase --abort")
    assert not folder.exists()

    tree.back_to(first)

    assert {path.name for path in folder.iterdir()} == files
    assert "rebase in progress" in tree.sh("git status")


def test_an_index_that_is_gone_comes_back(tree: OwnTree) -> None:
    first, index = tree.capture(), tree.sh("git ls-files --stage")
    tree.sh("rm .git/index")

    tree.back_to(first)

    assert tree.sh("git ls-files --stage") == index
    assert (tree.gitdir / "index").stat().st_mode & 0o777 == 0o644


def test_a_tree_that_is_not_what_it_should_be_afterwards_is_told(
    tree: OwnTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tree.capture()
    tree.sh("echo x > a.txt; git tag t")

    def unwritten(_restore: git_restoring.RepositoryRestore) -> None:
        """As if git had said that all is well."""

    monkeypatch.setattr(git_restoring.RepositoryRestore, "write", unwritten)

    with pytest.raises(RestoreFailedError, match="not what the snapshot says"):
        tree.back_to(first)


# --- what is known beside the files -------------------------------------------------------------


def test_of_a_folder_nothing_is_known_but_its_files(tree: OwnTree) -> None:
    state, stored = PlaceState(tree.resource), side(THEN)
    before = Before(stored=stored, fingerprint="")

    assert state.base() == {}
    assert state.copied(stored) is None
    assert state.read(None) == ExtraRecord()
    assert state.read(before) is None
    assert state.stands(stored, before)


def test_a_repository_is_never_written_without_what_is_to_be_spared(tree: OwnTree) -> None:
    state = tree.engine._side_of(tree.resource)
    assert isinstance(state, CheckoutState)
    before = Before(stored=side(THEN), fingerprint="")

    assert state.stands(side(THEN), before)
    assert not state.stands(side(replace(THEN, index="other")), before)
    with pytest.raises(RestoreFailedError, match="the user's own"):
        state.write(side(THEN))


def test_files_that_cannot_come_back_are_told(
    tree: OwnTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tree.capture()
    tree.sh("echo x > a.txt")

    def failing(*_given: object, **_named: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", failing)
        patched.setattr(os, "replace", failing)
        with pytest.raises(RestoreFailedError):
            tree.back_to(first)

    assert (tree.path / "a.txt").read_text() == "x\n"
    tree.back_to(first)
    assert (tree.path / "a.txt").read_text() == "one\n"
