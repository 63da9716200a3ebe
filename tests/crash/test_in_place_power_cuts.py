"""The power is cut during a way back in the user's own tree, or after it: git can read all of it,
the next command finishes it, and what was reported done is there."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.copies import put_back
from tests.support.in_place import Place, error_of
from tests.support.kill_points import PARTS, kill_points, killed, share
from tests.support.power_cuts import Syncs
from tests.support.world import World

_WORK = (
    "git commit -q --allow-empty -m here; echo two > README.md; mkdir new; echo x > new/x;"
    " git switch -qc agent; git add -A; git commit -qm agent; echo y > y; git add y"
)


@pytest.fixture
def place(quick_path: Path, template: World) -> Place:
    return Place(World(quick_path / "w", template))


@pytest.fixture
def syncs(place: Place, tmp_path: Path) -> Syncs:
    return Syncs(place.world.top, tmp_path / "synced")


@pytest.mark.parametrize("part", range(PARTS))
def test_an_undo_is_finished_wherever_the_power_was_cut(
    place: Place, syncs: Syncs, part: int
) -> None:
    first = place.state()
    place.run(_WORK).ok()
    last, top = place.state(), place.world.top
    saved = top.with_name("saved")
    subprocess.run(["cp", "-a", str(top), str(saved)], check=True)
    points = kill_points(lambda: place("undo").ok(), [place.path])
    assert place.state() == first
    for point in share(points, part, PARTS):
        put_back(top, saved)
        killed(syncs.noted(lambda: place("undo").ok()), point)
        lost = syncs.lose()
        assert place.project.git("fsck", "--no-dangling") == "", (point, lost)
        place.project.git("status")
        place.project.git("rev-parse", "--verify", "-q", "HEAD")
        place("undo").ok()
        assert place.state() == first, (point, lost)
        assert not list((place.path / ".git").glob("*.lock")), (point, lost)
        place("redo").ok()
        assert place.state() == last, (point, lost)


@pytest.mark.parametrize("words", [("undo",), ("redo",), ("plan", "rollback", "--yes")])
def test_a_way_back_that_has_returned_is_on_the_disk(
    place: Place, syncs: Syncs, words: tuple[str, ...]
) -> None:
    place.run(_WORK).ok()
    if words == ("redo",):
        place("undo").ok()
    if "rollback" in words:
        words = (*words, place("plan", "list").ok().data["plans"][0]["plan_id"], "0")
    assert _lost(place, syncs, lambda: place(*words)) == []


def test_a_run_that_has_returned_is_on_the_disk(place: Place, syncs: Syncs) -> None:
    """Git does not see to that: not for its index, nor for the HEAD that it moves."""
    assert _lost(place, syncs, lambda: place.run(_WORK)) == []


def test_a_run_that_has_failed_is_on_the_disk_too(place: Place, syncs: Syncs) -> None:
    assert _lost(place, syncs, lambda: place.run("echo x > x; exit 3"), code=1) == []


def _lost(place: Place, syncs: Syncs, work: Callable[[], Answer], code: int = 0) -> list[str]:
    """Of the user's, but for logs of git's."""
    child = os.fork()
    if not child:
        os._exit(syncs.noted(work)().code)  # type: ignore[attr-defined]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code
    return [name for name in syncs.lose() if name.startswith("project/") and "/logs/" not in name]


# --- locks from before the machine was started ----------------------------------------------------


@pytest.mark.parametrize(
    "name", ["refs/heads/main.lock", "refs/heads/agent.lock", "HEAD.lock", "packed-refs.lock"]
)
def test_a_lock_that_git_has_left_on_a_reference_is_in_nobodys_way(place: Place, name: str) -> None:
    first = place.state()
    place.run(_WORK).ok()
    _left_behind(place, name, "half")

    place("undo").ok()

    assert place.state() == first
    assert not (place.path / ".git" / name).exists()


def test_an_empty_lock_on_the_index_is_in_nobodys_way(place: Place) -> None:
    first = place.state()
    place.run(_WORK).ok()
    _left_behind(place, "index.lock", "")

    place("undo").ok()

    assert place.state() == first


def test_a_lock_on_the_index_that_holds_something_is_left_to_the_user(place: Place) -> None:
    place.run(_WORK).ok()
    last = place.state()
    lock = _left_behind(place, "index.lock", "DIRC")

    answer = place("undo")

    assert error_of(answer) == "repository-busy"
    assert str(lock) in answer.error["message"] + answer.error["hint"]
    assert lock.exists()
    assert place.state() == last


def test_an_index_that_git_cannot_read_is_named_with_what_to_type(place: Place) -> None:
    place.run("echo x > x").ok()
    index = place.path / ".git/index"
    index.write_bytes(b"")

    done = place("undo", "--yes").ok()

    assert not (place.path / "x").exists()
    told = next(line for line in done.data["left"] if line.startswith("the index"))
    remedy = told.partition("(")[2].partition(" makes")[0]
    subprocess.run(remedy, shell=True, check=True, capture_output=True, cwd=place.path)
    assert place.project.git("status", "--short") == ""


def test_an_index_that_git_cannot_read_comes_back_with_what_the_timeline_moved(
    place: Place,
) -> None:
    before = place.state()
    place.run(_WORK).ok()
    (place.path / ".git/index").write_bytes(b"")

    place("undo", "--yes").ok()

    assert place.state() == before


def _left_behind(place: Place, name: str, content: str) -> Path:
    lock = place.project.write(f".git/{name}", content)
    os.utime(lock, (0, 0))
    return lock
