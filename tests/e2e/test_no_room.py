"""A full disk, a limit that is reached: the step says so, and what is stored stays whole."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from tests.support.agents import COMMAND, Answer
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, shell, write

MIB = 1 << 20
CODE_AND_DATABASE = {
    "code": {"type": "git-checkout", "path": "."},
    "db": {"type": "sqlite", "path": "../app.db"},
}


def _random(count: int) -> str:
    """Files of 1 MB each, that no compression makes smaller."""
    return f"for i in $(seq {count}); do head -c {MIB} /dev/urandom > big$i; done"


@pytest.fixture
def small_disk(world: World) -> Generator[Callable[[str], object]]:
    """The snapshots on a disk of 3 MB of their own; calling it gives the disk another size."""
    place = world.agents.data_dir / "snapshots"
    place.mkdir(mode=0o700, exist_ok=True)
    if not _mount("size=3m,mode=700", place):
        pytest.skip("no tmpfs can be mounted here: that needs root")
    try:
        yield lambda size: subprocess.run(
            ["mount", "-o", f"remount,size={size}", str(place)], check=True
        )
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _mount(options: str, place: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_a_disk_that_fills_up_fails_the_step_and_harms_nothing_stored(
    world: World, small_disk: Callable[[str], object]
) -> None:
    plan = world.use(write("a.txt", "a\n"), shell(_random(6), "big"))
    said = refused(plan.execute(), "snapshot-failed")
    assert str(world.agents.data_dir / "snapshots") in said
    assert "free some space" in said
    _nothing_stored_is_harmed(world, plan)

    small_disk("64m")
    plan("resume").ok()
    assert plan.status["state"] == "complete"
    assert (plan.sandbox / "big6").stat().st_size == MIB
    plan.rollback("after file.write a.txt").ok()
    assert not (plan.sandbox / "big1").exists()


def _nothing_stored_is_harmed(world: World, plan: PlanHandle) -> None:
    """Each checkpoint in the list verifies, and the step that could not be kept is not done."""
    status = plan.status
    assert (status["state"], status["last_completed_step"]) == ("errored", 0)
    assert "snapshot" in plan("errors").ok().out
    listed = {group.group_id for group in plan.groups}
    assert set(plan("checkpoint", "verify").ok().data["verified"]) == listed
    assert "after shell big" not in {group.label for group in plan.groups}
    world.agents("store", "verify").ok()


def test_a_rollback_for_which_there_is_no_room_changes_nothing(
    world: World, small_disk: Callable[[str], object]
) -> None:
    plan = world.run(write("a.txt", "a\n"))
    for number in range(6):
        (plan.sandbox / f"by-hand{number}").write_bytes(os.urandom(MIB))
    before = plan.tree()
    refused(plan.rollback("start"), "snapshot-failed")
    assert plan.tree() == before
    small_disk("64m")
    plan.rollback("start").ok()
    assert not (plan.sandbox / "by-hand0").exists()


def test_a_database_that_does_not_fit_on_the_disk_is_told_at_once(
    world: World, small_disk: Callable[[str], object]
) -> None:
    database = world.top / "app.db"
    sql = f"CREATE TABLE t (b BLOB); INSERT INTO t VALUES (randomblob({6 * MIB}))"
    subprocess.run([shutil.which("sqlite3") or "sqlite3", str(database), sql], check=True)
    plan = world.use(write("a.txt", "a\n"), resources=CODE_AND_DATABASE)
    said = refused(plan.execute(), "snapshot-failed")
    assert "the first snapshot of `db`" in said
    assert "free some space" in said
    assert not list((world.agents.data_dir / "snapshots").glob("*.base*"))
    small_disk("64m")
    plan.execute().ok()
    assert plan.status["state"] == "complete"


def test_files_larger_than_a_process_may_write_fail_the_step_and_harm_nothing(
    world: World,
) -> None:
    """The same where nothing can be mounted: the store grows beyond what `ulimit -f` allows."""
    plan = world.use(write("a.txt", "a\n"), shell(_random(10), "big"))
    answer = _limited(world, 4 * MIB, "plan", "execute", plan.id)
    said = refused(answer, "snapshot-failed")
    assert str(world.agents.data_dir / "snapshots") in said
    _nothing_stored_is_harmed(world, plan)
    plan("resume").ok()
    assert plan.status["state"] == "complete"


def _limited(world: World, size: int, *argv: str) -> Answer:
    words = shlex.join([str(COMMAND), "--format", "json", *argv])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f {size // 1024}; exec {words}"],
        env=world.agents.environ,
        cwd=world.project.path,
        capture_output=True,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    return Answer(argv=argv, code=done.returncode, out=out, err=err)


def test_a_store_that_may_not_be_written_is_told(world: World) -> None:
    plan = world.use(write("a.txt", "a\n"))
    place = world.agents.data_dir / "snapshots"
    place.mkdir(exist_ok=True)
    (place / f"{plan.id}.db").mkdir()
    said = refused(plan.execute(), "snapshot-failed")
    assert f"{place}/{plan.id}.db" in said
    assert "something else is in its place" in said
    (place / f"{plan.id}.db").rmdir()
    plan.execute().ok()
