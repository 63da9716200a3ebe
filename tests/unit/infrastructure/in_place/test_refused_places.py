"""What is not worked on in place, each with what it is, and what is told of what is."""

import os
import shutil
from pathlib import Path

import pytest
from own_tree import PLAN, OwnTree

from cleveragents.domain.errors import InPlaceRefusedError, PlaceTakenError, ResourceError
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import Listing, walk
from cleveragents.infrastructure.sandbox.in_place import inspect, regenerable
from cleveragents.infrastructure.sandbox.in_place.marker import (
    Occupant,
    move_in,
    move_out,
    occupant_of,
)


@pytest.fixture
def tree(tmp_path: Path) -> OwnTree:
    return OwnTree(tmp_path)


def refused(tree: OwnTree, location: Path | None = None) -> str:
    with pytest.raises(InPlaceRefusedError) as found:
        tree.inspect(location)
    return str(found.value)


# --- places -------------------------------------------------------------------------------------


def test_a_home_folder_and_what_holds_it_are_refused(
    tree: OwnTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tree.path))

    for place in (tree.path, tree.top, Path("/")):
        assert "is or holds a home folder" in refused(tree, place)


def test_our_own_data_is_refused_from_both_sides(tree: OwnTree) -> None:
    inside = Path(tree.data) / "sandboxes"
    inside.mkdir(parents=True, exist_ok=True)

    for place in (tree.top, Path(tree.data), inside):
        assert "where agents keeps its own data" in refused(tree, place)


def test_what_is_no_folder_is_refused(tree: OwnTree) -> None:
    assert "is not a folder" in refused(tree, tree.path / "a.txt")
    assert "is not a folder" in refused(tree, tree.path / "none")


def test_what_cannot_be_written_is_refused(tree: OwnTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)

    assert "cannot be written" in refused(tree)


# --- repositories -------------------------------------------------------------------------------


def test_a_worktree_of_another_repository_is_refused(tree: OwnTree) -> None:
    tree.sh("git worktree add -q ../other")

    assert "worktree or submodule of another" in refused(tree, tree.top / "other")


def test_half_a_repository_is_refused(tree: OwnTree) -> None:
    (tree.gitdir / "HEAD").unlink()

    assert "no whole repository" in refused(tree)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reftable/tables.list", "keeps its branches in a reftable"),
        ("modules/lib/HEAD", "has submodules"),
        ("sharedindex.0123", "has a split index"),
    ],
)
def test_states_that_lie_elsewhere_are_refused(tree: OwnTree, name: str, said: str) -> None:
    (tree.gitdir / name).parent.mkdir(parents=True, exist_ok=True)
    (tree.gitdir / name).touch()

    assert said in refused(tree)


def test_repositories_inside_are_refused_by_name_and_may_be_left_out(tree: OwnTree) -> None:
    tree.sh("git init -q inner; git init -q --bare store.git")

    said = refused(tree)

    assert "inner" in said
    assert "store.git" in said
    assert tree.inspect(exclude=("inner/", "store.git/")).location == str(tree.path)


def test_a_folder_that_is_a_bare_repository_is_refused(tmp_path: Path) -> None:
    folder = OwnTree(tmp_path, repository=False)
    folder.sh("git init -q --bare .")

    assert "is a bare repository" in refused(folder)


# --- what is too much, or cannot be read --------------------------------------------------------


def test_what_is_too_much_is_refused_with_what_is_largest(
    tree: OwnTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "_MOST_FILES", 1)
    (tree.path / "src/large").write_bytes(b"x" * 5000)

    with pytest.raises(InPlaceRefusedError) as found:
        tree.inspect()

    assert "most of it is in src" in str(found.value)
    assert "--exclude src/" in found.value.hint


def test_room_is_asked_for_where_the_data_will_be(tree: OwnTree) -> None:
    shutil.rmtree(tree.data, ignore_errors=True)
    tree.data = str(tree.top / "not/yet/there")

    assert tree.inspect().location == str(tree.path)
    assert not Path(tree.data).exists()


def test_a_tree_that_cannot_be_read_is_told(tree: OwnTree, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_given: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(inspect, "walk", failing)

    with pytest.raises(ResourceError, match="cannot be read: Input/output error"):
        tree.inspect()


# --- what is told -------------------------------------------------------------------------------


def test_all_that_no_checkpoint_has_is_told(tree: OwnTree) -> None:
    tree.sh("mkdir -p env/lib src/__pycache__ own; touch env/pyvenv.cfg src/__pycache__/b.pyc")
    os.mkfifo(tree.path / "pipe")

    found = tree.inspect(exclude=("own/",))

    told = "\n".join(found.notices)
    assert sorted(found.exclude) == ["env/", "src/__pycache__/"]
    assert "env (python -m venv, and pip)" in told
    assert "as you said: own/" in told
    assert "left alone (sockets, pipes or devices): pipe" in told
    assert not tree.inspect(include=("env/", "src/__pycache__/")).exclude


def test_a_folder_on_another_file_system_is_told(
    tree: OwnTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.path / "src/deep").mkdir()

    def mounted(anchor: RootedFolder, exclude: Excludes) -> Listing:
        listing = walk(anchor, exclude)
        for path in (b"src", b"src/deep"):
            found = listing.found[path]
            listing.found[path] = found._replace(dev=found.dev + 1)
        return listing

    monkeypatch.setattr(inspect, "walk", mounted)
    told = [line for line in tree.inspect().notices if "other file systems" in line]

    assert told == ["on other file systems, and captured as they are: src"]


def test_only_what_a_tool_wrote_can_be_made_again(tree: OwnTree) -> None:
    def made(*names: str, text: str = "") -> str | None:
        folder = tree.path.joinpath(*names[:-1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / names[-1]).write_text(text)
        return regenerable.regenerable_in(str(folder))

    signature = "Signature: 8a477f597d28d172789f06886806bc55\n"
    assert made("one", "CACHEDIR.TAG", text=signature) == "the tool that made it"
    assert made("two", "CACHEDIR.TAG", text="mine") is None
    assert made("three", "__pycache__", "a.pyc") == "Python"
    assert made("four", "__pycache__", "notes.txt") is None
    assert regenerable.regenerable_in(str(tree.path / "five/__pycache__")) is None


# --- whose it is --------------------------------------------------------------------------------


def test_a_tree_of_another_installation_is_refused_with_its_note(tmp_path: Path) -> None:
    for place, note in ((True, ".git/cleveragents-in-place"), (False, ".cleveragents-in-place")):
        (tmp_path / str(place)).mkdir()
        tree = OwnTree(tmp_path / str(place), repository=place)
        theirs = Occupant(installation="theirs", data_dir="/their/data", plan_id=PLAN)
        move_in(str(tree.path), theirs)

        with pytest.raises(PlaceTakenError) as found:
            tree.inspect()

        assert str(tree.path / note) in f"{found.value} {found.value.hint}"
        move_in(str(tree.path), Occupant(installation="ours", data_dir="d", plan_id=PLAN))
        assert tree.inspect().location == str(tree.path)


def test_a_note_is_taken_away_by_whose_it_is_alone(tree: OwnTree) -> None:
    place = str(tree.path)
    ours = Occupant(installation="ours", data_dir="/data", plan_id=PLAN)
    move_in(place, ours)

    move_out(place, type(PLAN)("01ARZ3NDEKTSV4RRFFQ69G5FAX"))
    assert occupant_of(place) == ours
    move_out(place, PLAN)
    assert occupant_of(place) is None


def test_a_note_that_cannot_be_read_is_nobodys(tree: OwnTree) -> None:
    (tree.gitdir / "cleveragents-in-place").write_text('{"installation": 1}')

    assert occupant_of(str(tree.path)) is None
    assert tree.inspect().location == str(tree.path)
