"""In place, others work in the same tree: what they changed is told, asked about, and kept."""

import pytest
from tests.support.in_place import Place, error_of
from tests.support.terminals import Terminal
from tests.support.world import World


@pytest.fixture
def place(world: World) -> Place:
    return Place(world)


def test_what_others_changed_is_asked_about_and_kept_or_taken_back(place: Place) -> None:
    place.project.write("mine.txt", "old")
    place.run("echo agent > agent.txt").ok()
    place.project.write("mine.txt", "edited since")

    assert error_of(place("undo")) == "changed-by-others"
    assert "mine.txt" in place("undo").error["message"]
    assert (place.path / "agent.txt").exists()

    kept = place("undo", "--keep").ok().data

    assert kept["left"] == ["mine.txt"]
    assert kept["changed_by_others"] == ["mine.txt"]
    assert place.project.read("mine.txt") == "edited since"
    assert not (place.path / "agent.txt").exists()


def test_at_a_terminal_one_is_asked_and_no_leaves_all_as_it_is(place: Place) -> None:
    place.project.write("mine.txt", "old")
    place.run("echo agent > agent.txt").ok()
    place.project.write("mine.txt", "edited since")
    edited = place.tree()

    for words in (("undo",), ("rewind", "1")):
        at = Terminal.of(place.world, *words)
        assert "mine.txt" in at.wait_for("Take that back too")
        at.type("n\n")
        assert at.code() != 0
        assert place.tree() == edited


def test_what_was_taken_back_with_yes_is_in_a_group(place: Place) -> None:
    place.project.write("mine.txt", "old")
    place.run("echo agent > agent.txt").ok()
    place.project.write("mine.txt", "edited since")
    edited = place.state()

    done = place("undo", "--yes").ok().data

    assert done["changed_by_others"] == ["mine.txt"]
    assert place.project.read("mine.txt") == "old"
    place("redo").ok()
    place("redo").ok()
    assert place.state() == edited


def test_a_later_run_has_a_row_for_what_others_changed_and_undo_takes_it_back(
    place: Place,
) -> None:
    place.run("echo agent > agent.txt").ok()
    place.project.write("mine.txt", "mine")
    place.run("echo more > more.txt").ok()

    assert place.rows() == ["agent.txt", "changed by others: mine.txt", "more.txt"]
    place("undo", "-n", "2").ok()
    assert not (place.path / "mine.txt").exists()
    assert (place.path / "agent.txt").exists()


def test_a_commit_that_somebody_made_since_is_left_and_told(place: Place) -> None:
    place.run("echo agent > agent.txt; git add agent.txt; git commit -qm agent").ok()
    place.project.write("mine.txt", "mine")
    mine = place.project.commit("mine")

    done = place("undo", "--keep").ok().data

    assert place.project.head == mine
    assert any("moved by others" in name for name in done["left"])
    assert not (place.path / "agent.txt").exists()
    assert place.project.git("status", "--short") == " D agent.txt"


def test_branches_and_tags_of_others_are_untouched(place: Place) -> None:
    place.run("echo agent > agent.txt; git add .; git commit -qm agent; git branch of-agent").ok()
    place.project.git("branch", "mine")
    place.project.git("tag", "mine-too")
    mine = place.project.head

    place("undo", "--yes").ok()

    assert place.project.git("rev-parse", "mine") == mine
    assert place.project.git("rev-parse", "mine-too") == mine
    assert place.project.git("branch", "--list", "of-agent") == ""


def test_what_others_staged_since_stays_staged(place: Place) -> None:
    place.run("echo agent > agent.txt").ok()
    place.project.write("mine.txt", "mine")
    place.project.git("add", "mine.txt")

    place("undo", "--keep").ok()

    assert place.project.git("status", "--short") == "A  mine.txt"


def test_a_folder_with_something_of_others_in_it_stays(place: Place) -> None:
    place.run("mkdir made; echo a > made/agent").ok()
    place.project.write("made/mine", "mine")

    place("undo", "--keep").ok()

    assert [path.name for path in (place.path / "made").iterdir()] == ["mine"]


def test_a_dry_run_changes_nothing_and_names_what_others_did(place: Place) -> None:
    place.run("echo agent > agent.txt").ok()
    place.project.write("mine.txt", "mine")
    before = place.state()

    told = place("undo", "--dry-run").ok().data

    assert told["changed_by_others"] == ["mine.txt"]
    assert place.state() == before


def test_single_files_come_back_and_nothing_else_moves(place: Place) -> None:
    place.project.write("a", "1")
    place.project.write("b", "1")
    place.run("echo 2 > a; echo 2 > b; git add .; git commit -qm x").ok()
    head = place.project.head

    place("plan", "rollback", "--yes", "--only", "a", "latest", "0").ok()

    assert (place.project.read("a"), place.project.read("b")) == ("1", "2\n")
    assert place.project.head == head
