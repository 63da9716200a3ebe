"""The data folder is the user's own: closed to others from the start, or then, or refused."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.support.agents import COMMAND, Agents
from tests.support.refusals import refused
from tests.support.world import World, action, write

FOLDERS = ("locks", "sandboxes", "scratch", "snapshots", "trash")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_below(folder: Path) -> list[Path]:
    """What other users can reach: nothing, as long as the top is closed."""
    return [path for path in (folder, *(folder / name for name in FOLDERS)) if mode(path) & 0o077]


@pytest.mark.parametrize("wide", [0o777, 0o755, 0o750, 0o701])
def test_one_that_is_open_to_others_is_closed_and_that_is_told(world: World, wide: int) -> None:
    world.run(write("a", "1"))
    data = world.agents.data_dir
    data.chmod(wide)
    (data / "sandboxes").chmod(wide)

    answer = world.agents.json("plan", "list")

    assert answer.code == 0
    assert open_below(data) == []
    told = [text for text in answer.envelope["messages"] if "closed to them now" in text]
    assert (len(told), str(data) in told[0], str(data / "sandboxes") in told[0]) == (1, True, True)
    again = world.agents.json("plan", "list").ok()
    assert not any("closed to them" in text for text in again.envelope["messages"])


def test_it_is_told_also_if_the_command_fails(world: World) -> None:
    world.agents.data_dir.chmod(0o777)
    answer = world.agents.json("plan", "status", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert answer.code == 1
    assert "closed to them now" in answer.err
    assert mode(world.agents.data_dir) == 0o700


@pytest.mark.parametrize("how", ["an empty folder", "the user's settings in it", "none yet"])
def test_a_new_one_is_closed_whatever_the_umask_is(world: World, how: str) -> None:
    data = world.top / "deep" / "data"
    if how != "none yet":
        data.mkdir(parents=True)
        data.chmod(0o777)
    if how == "the user's settings in it":
        (data / "config.toml").write_text("")
    path = world.write_action(action(write("a", "1")))
    line = (
        f"umask 000; {COMMAND} --data-dir {data} plan use {path} && "
        f"{COMMAND} --data-dir {data} plan execute latest"
    )
    environ = {**world.agents.environ, "CLEVERAGENTS_DATABASE_URL": f"sqlite:///{world.top}/o/d.db"}
    subprocess.run(
        ["sh", "-c", line], cwd=world.project.path, env=environ, check=True, capture_output=True
    )
    assert open_below(data) == []
    for found in (data / "sandboxes").iterdir():
        assert mode(found) == 0o700


def test_one_that_holds_other_things_is_refused_and_left_as_it_is(world: World) -> None:
    """`--data-dir /tmp` must not close the machine's /tmp."""
    shared = world.top / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "notes.txt").write_text("theirs")

    told = refused(world.agents("--data-dir", str(shared), "plan", "list"), "data-dir-unusable")

    assert "chmod 700" in told
    assert mode(shared) == 0o755
    assert [path.name for path in shared.iterdir()] == ["notes.txt"]
    shared.chmod(0o700)
    world.agents("--data-dir", str(shared), "plan", "list").ok()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_one_of_another_user_is_refused(world: World) -> None:
    world.run(write("a", "1"))
    data = world.agents.data_dir
    for given in (data, data / "locks"):
        os.chown(given, 12345, 12345)
        told = refused(world.agents("plan", "list"), "data-dir-unusable")
        assert "belongs to another user" in told
        assert "--data-dir" in told
        os.chown(given, 0, 0)
    world.agents("plan", "list").ok()


def test_a_file_in_its_place_is_refused(world: World) -> None:
    file = world.top / "file"
    file.write_text("x")
    answer = Agents(world.home, world.project.path)("--data-dir", str(file), "plan", "list")
    refused(answer, "data-dir-unusable")
    assert file.read_text() == "x"
