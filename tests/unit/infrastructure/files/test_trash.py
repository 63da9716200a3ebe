"""The trash takes a tree by one rename, and everything in it goes, whatever it is."""

import errno
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cleveragents.infrastructure.files.installed import empty_trash
from cleveragents.infrastructure.files.installed.empty_trash import LOCK, empty
from cleveragents.infrastructure.files.installed.trash import Trash


@pytest.fixture
def trash(tmp_path: Path) -> Trash:
    return Trash(str(tmp_path / "data"))


def _tree(top: Path, folders: int = 3) -> Path:
    for number in range(folders):
        (top / f"d{number}/e").mkdir(parents=True)
        (top / f"d{number}/e/f").write_text("x" * 100)
    (top / "link").symlink_to("/")
    return top


def _left(trash: Trash) -> list[str]:
    return [found.name for found in Path(trash.path).iterdir() if found.name != LOCK]


def test_what_it_takes_is_gone_from_its_place(trash: Trash, tmp_path: Path) -> None:
    place = _tree(tmp_path / "tree")
    assert trash.take(str(place))
    assert not place.exists()
    assert len(_left(trash)) == 1
    assert trash.size() >= 300


def test_all_of_it_goes_and_nothing_that_it_links_to(trash: Trash, tmp_path: Path) -> None:
    kept = _tree(tmp_path / "kept")
    place = _tree(tmp_path / "tree")
    (place / "out").symlink_to(kept)
    trash.take(str(place))
    trash.empty()
    assert _left(trash) == []
    assert (kept / "d0/e/f").exists()


def test_closed_folders_go_too(trash: Trash, tmp_path: Path) -> None:
    place = _tree(tmp_path / "tree")
    (place / "d1/e").chmod(0o500)
    (place / "d1").chmod(0)
    place.chmod(0o500)
    assert trash.take(str(place))
    trash.empty_now()
    assert _left(trash) == []


def test_no_tree_is_too_deep(trash: Trash, tmp_path: Path) -> None:
    place = tmp_path / "deep"
    subprocess.run(
        [
            "/bin/sh",
            "-c",
            "mkdir deep && cd deep && for i in $(seq 1500); do mkdir d && cd d; done",
        ],
        cwd=tmp_path,
        check=True,
    )
    trash.take(str(place))
    trash.empty_now()
    assert _left(trash) == []


def test_what_takes_longer_is_deleted_by_a_process_that_ends(trash: Trash, tmp_path: Path) -> None:
    trash.take(str(_tree(tmp_path / "tree", 40)))
    assert not empty(trash.path, 0)
    assert _left(trash)
    # The next command goes on with it.
    trash.empty()
    until = time.monotonic() + 30
    while _left(trash) and time.monotonic() < until:
        time.sleep(0.02)
    assert _left(trash) == []


def test_the_process_deletes_by_itself(trash: Trash, tmp_path: Path, monkeypatch) -> None:
    from cleveragents.infrastructure.files.installed import trash as module

    monkeypatch.setattr(module, "_MOMENT", 0)
    trash.take(str(_tree(tmp_path / "tree", 40)))
    trash.empty()
    until = time.monotonic() + 30
    while _left(trash) and time.monotonic() < until:
        time.sleep(0.02)
    assert _left(trash) == []


def test_whoever_finds_another_at_it_leaves_it_to_him(trash: Trash, tmp_path: Path) -> None:
    trash.take(str(_tree(tmp_path / "tree")))
    with Path(f"{trash.path}/{LOCK}").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        trash.empty()
        assert _left(trash)
    trash.empty()
    assert _left(trash) == []


def test_another_file_system_is_not_taken_from(trash: Trash, tmp_path: Path) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system")
    place = shm / f"trash-{os.getpid()}"
    _tree(place)
    try:
        assert not trash.take(str(place))
        assert (place / "d0/e/f").exists()
    finally:
        subprocess.run(["rm", "-r", str(place)], check=True)


def test_what_should_be_gone_for_long_is_named(trash: Trash, tmp_path: Path, monkeypatch) -> None:
    trash.take(str(_tree(tmp_path / "tree")))
    assert trash.stuck() == []
    later = time.time_ns() + 3600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert len(trash.stuck()) == 1


# --- what gets in the way -----------------------------------------------------------------------


def test_where_nothing_was_thrown_away_there_is_nothing_to_do(trash: Trash) -> None:
    trash.empty_now()
    assert not Path(trash.path).exists()
    assert trash.size() == 0


def test_what_the_system_does_not_move_stays_where_it_is(
    trash: Trash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _tree(tmp_path / "tree")
    monkeypatch.setattr(os, "rename", _elsewhere)
    assert not trash.take(str(place))
    assert (place / "d0/e/f").exists()
    assert _left(trash) == []


def test_what_cannot_be_deleted_stays_and_keeps_nothing_else_from_going(
    trash: Trash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("held", "tree"):
        trash.take(str(_tree(tmp_path / name)))
    real = os.rmdir

    def rmdir(path: str, *, dir_fd: int | None = None) -> None:
        if path.endswith("held"):
            raise OSError(errno.EBUSY, "busy", path)
        real(path, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", rmdir)
        trash.empty_now()
    assert [name.rpartition("-")[2] for name in _left(trash)] == ["held"]
    trash.empty_now()
    assert _left(trash) == []


def test_what_vanishes_meanwhile_is_in_nobodys_way(
    trash: Trash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trash.take(str(_tree(tmp_path / "tree")))
    real, vanished = os.listdir, ["gone"]

    def listdir(path: str | int) -> list[str]:
        found = [*vanished, *real(path)]
        vanished.clear()
        return found

    monkeypatch.setattr(os, "listdir", listdir)
    trash.empty_now()
    assert _left(trash) == []
    vanished.append("gone")
    assert trash.stuck() == []


def test_a_folder_of_another_file_system_is_deleted_where_it_is(
    trash: Trash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _tree(tmp_path / "kept")
    place = _tree(tmp_path / "tree")
    (place / "d0/out").symlink_to(kept)
    trash.take(str(place))
    monkeypatch.setattr(os, "rename", _elsewhere)
    trash.empty_now()
    assert _left(trash) == []
    assert (kept / "d0/e/f").exists()


def test_when_its_time_is_over_within_a_folder_the_rest_is_left_for_the_next(
    trash: Trash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trash.take(str(_tree(tmp_path / "tree")))
    ticks = iter((0.0, 0.0))  # when it begins, and when it opens the folder
    with monkeypatch.context() as patched:
        patched.setattr(time, "monotonic", lambda: next(ticks, 10.0))
        assert not empty(trash.path, 1)
    (left,) = _left(trash)
    assert (Path(trash.path) / left / "d0/e/f").exists()
    assert empty(trash.path)
    assert _left(trash) == []


def test_as_a_program_it_gives_way_to_all_others_and_empties_the_folder_it_is_given(
    trash: Trash, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trash.take(str(_tree(tmp_path / "tree")))
    given: list[int] = []
    monkeypatch.setattr(os, "nice", given.append)
    monkeypatch.setattr(sys, "argv", ["empty_trash.py", trash.path])
    runpy.run_path(empty_trash.__file__, run_name="__main__")
    assert given == [19]
    assert _left(trash) == []


def _elsewhere(*_: object, **__: object) -> None:
    raise OSError(errno.EXDEV, "another file system")
