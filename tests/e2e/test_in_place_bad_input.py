"""Trees that move or go, folders that are left out, and words that mean nothing in place."""

import shutil
from pathlib import Path

import pytest
from tests.support.in_place import Place, error_of
from tests.support.world import World


@pytest.fixture
def place(world: World) -> Place:
    return Place(world)


def test_a_tree_that_was_moved_is_followed_and_goes_on_with_its_timeline(
    place: Place, tmp_path: Path
) -> None:
    place.run("echo x > x").ok()
    moved = tmp_path / "moved"
    place.path.rename(moved)
    agents = place.world.agents.at(moved)

    agents("run", "--in-place", "--", "sh", "-c", "echo y > y").ok()
    agents("undo", "-n", "2").ok()

    assert not (moved / "x").exists()
    assert len(agents("plan", "list").ok().data["plans"]) == 1


def test_a_tree_that_is_gone_is_told_and_can_be_closed(place: Place) -> None:
    place.run("echo x > x").ok()
    shutil.rmtree(place.path)
    agents = place.world.agents.at(place.world.beside)

    assert error_of(agents("undo", "--plan", "in-place-1", "--any")) == "project-missing"
    agents("discard", "--yes", "--any", "in-place-1").ok()


def test_regenerable_folders_are_left_out_by_what_is_in_them_and_told(place: Place) -> None:
    place.project.write("node_modules/.package-lock.json", "{}")
    place.project.write("node_modules/dep/index.js", "1")
    place.project.write("notes/build/work.txt", "mine")
    place.project.write("build/work.txt", "mine")

    begun = place.run("echo 2 | tee node_modules/dep/index.js build/work.txt > a").ok()
    told = place("undo").ok().envelope["messages"]

    assert "node_modules (npm ci)" in begun.err
    assert place.project.read("node_modules/dep/index.js") == "2\n"
    assert place.project.read("build/work.txt") == "mine"
    assert any("node_modules/" in line for line in told)


def test_include_holds_a_regenerable_folder_too(place: Place) -> None:
    place.project.write("node_modules/.package-lock.json", "{}")
    place.project.write("node_modules/dep/index.js", "1")
    before = place.state()

    place.run("rm -r node_modules", "--include", "node_modules").ok()
    place("undo").ok()

    assert place.state() == before


def test_options_that_have_no_meaning_in_place_are_refused(place: Place) -> None:
    assert place("run", "--in-place", "--yes", "--", "true").code == 2
    place.run("true").ok()
    refused = place.run("true", "--exclude", "x")
    assert "was not said when it began" in refused.error["message"]


def test_a_correction_in_place_is_refused(place: Place) -> None:
    place.run("echo x > x").ok()
    before = place.state()

    refused = place("plan", "correct", "--mode", "revert", "--guidance", "other", "--yes", "1")

    assert error_of(refused) == "correction-refused"
    assert place.state() == before
