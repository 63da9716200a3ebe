"""What a power cut has left is found and mended, by the next command or by `agents doctor`."""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.agents import COMMAND
from tests.support.corrections import correct, decisions
from tests.support.kill_points import cut_short, kill_points, killed
from tests.support.machines import can_be_made, just_started
from tests.support.restarts import lose_bytes, restart
from tests.support.trees import tree_of
from tests.support.world import CODE, PlanHandle, World, shell, write

from cleveragents.infrastructure.clock import UlidSource
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import change_ref
from cleveragents.infrastructure.sqlite.side_files import is_hot


def pins(world: World) -> Sequence[Path]:
    top = world.project.path / ".git" / "refs" / "cleveragents"
    return [path for path in top.rglob("*") if path.is_file()]


@pytest.mark.parametrize("left", [b"", b"\0" * 41])
def test_a_reference_of_ours_that_holds_nothing_is_made_again(world: World, left: bytes) -> None:
    plan = world.use(write("a", "1"))
    (pin,) = pins(world)
    held = pin.read_bytes()
    pin.write_bytes(left)
    found = world.agents("doctor")
    assert (found.code, [f["check"] for f in found.data["findings"]]) == (1, ["leftovers"])
    world.agents("doctor", "--fix", "--yes").ok()
    assert pin.read_bytes() == held
    world.agents("doctor").ok()
    assert world.project.git("fsck") == ""
    _goes_on(plan)
    assert pins(world) == []


def test_a_reference_of_ours_that_holds_nothing_goes_with_its_plan(world: World) -> None:
    plan = world.keep_nothing().run(write("a", "1"))
    (pin,) = pins(world)
    pin.write_bytes(b"")
    plan("apply", "--yes").ok()
    assert pins(world) == []
    world.agents("doctor").ok()


def _goes_on(plan: PlanHandle) -> None:
    plan("execute").ok()
    plan.agents("config", "set", "apply.keep", "0").ok()
    plan("apply", "--yes").ok()


# --- what steps have written ----------------------------------------------------------------------


def test_bytes_that_a_power_cut_has_taken_come_back_before_an_apply(world: World) -> None:
    plan = world.run(write("a", "one\n"), write("b", "two\n"))
    lose_bytes(world.agents, plan.sandbox / "a", "a")
    restart(world.agents)
    answer = plan("apply", "--yes").ok()
    assert "1 path brought back" in answer.err
    assert (world.project.read("a"), world.project.read("b")) == ("one\n", "two\n")


def test_files_that_a_power_cut_has_taken_come_back_before_an_apply(world: World) -> None:
    plan = world.run(write("a", "one\n"), write("b", "two\n"))
    (plan.sandbox / "b").unlink()
    restart(world.agents)
    plan("apply", "--yes").ok()
    assert (world.project.read("a"), world.project.read("b")) == ("one\n", "two\n")


def test_what_was_found_after_a_restart_is_kept_and_the_plan_stands_where_it_stood(
    world: World,
) -> None:
    plan = world.run(write("a", "one\n"))
    (plan.sandbox / "mine").write_text("by hand\n")
    restart(world.agents)
    plan("execute").ok()
    assert not (plan.sandbox / "mine").exists()
    assert (plan.status["phase"], plan.status["state"]) == ("execute", "complete")
    before = tree_of(plan.sandbox)
    plan.rollback(plan.status["last_checkpoint_id"]).ok()
    assert tree_of(plan.sandbox) == before
    plan.rollback("found after a restart").ok()
    assert (plan.sandbox / "mine").read_text() == "by hand\n"


def test_a_rollback_after_a_restart_brings_every_byte_back(world: World) -> None:
    plan = world.run(write("a", "one\n"), write("b", "two\n"))
    first = next(group for group in plan.groups if group.label.startswith("decision 2"))
    lose_bytes(world.agents, plan.sandbox / "a", "a")
    restart(world.agents)
    plan.rollback(first.group_id).ok()
    assert (plan.sandbox / "a").read_text() == "one\n"


def test_a_rollback_of_single_files_that_was_cut_off_brings_every_byte_back(world: World) -> None:
    plan = world.run(write("a", "one\n"), write("b", "two\n"), write("b", "three\n"))
    first = next(group for group in plan.groups if group.label.startswith("decision 3"))
    words = ("plan", "rollback", "--yes", "--only", "b", plan.id, first.group_id)
    _cut_off_with_its_intent(world, lambda: world.agents(*words))
    lose_bytes(world.agents, plan.sandbox / "a", "a")
    restart(world.agents)
    plan("execute").ok()
    assert (plan.sandbox / "a").read_text() == "one\n"
    assert (plan.sandbox / "b").read_text() == "two\n"


def test_a_correction_that_was_cut_off_brings_every_byte_back(world: World) -> None:
    plan = world.run(write("a", "one\n"), write("b", "two\n"))
    _cut_off_with_its_intent(world, lambda: correct(plan, decisions(plan)[1]))
    lose_bytes(world.agents, plan.sandbox / "a", "a")
    restart(world.agents)
    plan("execute").ok()
    assert (plan.sandbox / "a").read_text() == "one\n"
    assert (plan.sandbox / "b").read_text() == "two\n"


def _cut_off_with_its_intent(world: World, work: Callable[[], object]) -> None:
    """At the first moment at which it is stored what the files are to become."""
    for at in range(1, 100):
        cut_short(work, at)
        with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as db:
            if db.execute("select 1 from plans where rollback_target is not null").fetchone():
                return
    raise AssertionError("it was never stored")


def test_a_step_that_was_cut_off_is_undone_with_all_that_was_lost(world: World) -> None:
    flag = world.beside / "go"
    plan = world.use(write("a", "one\n"), shell(f"test -e {flag} && echo two > b"))
    assert plan("execute").code == 1
    lose_bytes(world.agents, plan.sandbox / "a", "a")
    restart(world.agents)
    flag.touch()
    plan("resume").ok()
    plan("apply", "--yes").ok()
    assert (world.project.read("a"), world.project.read("b")) == ("one\n", "two\n")


@pytest.mark.parametrize("name", ["index", "HEAD", "config", "packed-refs", "objects"])
def test_a_sandbox_whose_repository_is_empty_after_a_restart_is_made_whole(
    world: World, name: str
) -> None:
    commit = "git add -A && git -c user.name=n -c user.email=e@x commit -qm step"
    plan = world.run(write("a", "one\n"), shell(commit))
    repository = plan.sandbox.with_name(f"{plan.sandbox.name}.git")
    for file in [p for p in repository.rglob("*") if p.is_file()]:
        if name in file.relative_to(repository).parts:
            file.chmod(0o600)
            file.write_bytes(b"")
    restart(world.agents)
    plan("execute").ok()
    state = ["git", "-C", str(plan.sandbox), "status", "--porcelain"]
    assert subprocess.run(state, check=True, capture_output=True).stdout == b""
    plan.rollback(plan.groups[1].group_id).ok()
    plan("resume").ok()
    plan("apply", "--yes").ok()
    assert world.project.read("a") == "one\n"


def test_a_database_whose_pages_are_lost_comes_back(world: World) -> None:
    database = world.top / "app.db"
    with closing(sqlite3.connect(database)) as db:
        db.executescript("create table t (x); insert into t values ('one')")
    steps = {"name": "s", "tool": "sql.execute", "with": {"sql": "insert into t values ('two')"}}
    resources = {"db": {"type": "sqlite", "path": str(database)}}
    plan = world.run(steps, resources=resources)
    copy = Path(plan.status["sandboxes"][0]["path"])
    copy.write_bytes(b"\0" * copy.stat().st_size)
    restart(world.agents)
    plan("apply", "--yes").ok()
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("select x from t").fetchall() == [("one",), ("two",)]


def test_children_that_wait_to_be_merged_are_mended_first(world: World) -> None:
    flag = world.beside / "go"
    plan = world.use(
        {
            "name": "both",
            "subplans": {
                "parallel": False,
                "max_retries": 0,
                "plans": [
                    {"name": "one", "steps": [write("a", "one\n")]},
                    {"name": "two", "steps": [shell(f"test -e {flag} && echo two > b")]},
                ],
            },
        }
    )
    assert plan("execute").code == 1
    restart(world.agents)
    flag.touch()
    plan("resume").ok()
    plan("apply", "--yes").ok()
    assert (world.project.read("a"), world.project.read("b")) == ("one\n", "two\n")


@pytest.mark.skipif(not can_be_made(), reason="needs a user namespace")
def test_a_pin_of_a_plan_that_was_never_recorded_is_found_once_the_machine_was_started(
    world: World,
) -> None:
    plan = world.run(write("a", "1"))
    [pin] = [line.split()[0].decode() for line in world.project.traces()]
    # As if `plan use` had been cut off between its pin and its record, a while ago.
    cut_off = UlidSource().new()
    time.sleep(1.1)
    stray = pin.replace(plan.id, cut_off)
    world.project.git("update-ref", stray, "HEAD")
    world.agents("doctor").ok()
    assert _doctor_of_a_machine_just_started(world) == 1
    assert _doctor_of_a_machine_just_started(world, "--fix", "--yes") == 0
    assert [line.split()[0].decode() for line in world.project.traces()] == [pin]


def _doctor_of_a_machine_just_started(world: World, *words: str) -> int:
    command = [*just_started(), str(COMMAND), "doctor", *words]
    where = {"cwd": world.project.path, "env": world.agents.environ}
    return subprocess.run(command, **where, stdin=subprocess.DEVNULL, check=False).returncode


# --- locks that git has left on references -------------------------------------------------------


@pytest.mark.parametrize(
    ("lock", "words"),
    [
        ("refs/heads/main.lock", ()),
        ("HEAD.lock", ()),
        ("packed-refs.lock", ()),
        ("refs/heads/result.lock", ("--branch", "result")),
    ],
)
def test_a_lock_on_a_reference_from_before_the_machine_was_started_is_in_nobodys_way(
    world: World, lock: str, words: tuple[str, ...]
) -> None:
    plan = world.keep_nothing().run(write("a", "1"))
    left = world.project.write(f".git/{lock}", "")
    os.utime(left, (0, 0))
    plan("apply", "--yes", *words).ok()
    assert world.project.git("cat-file", "blob", f"{words[1] if words else 'main'}:a") == "1"
    assert not left.exists()


def test_a_lock_with_our_own_commit_is_taken_up_again(world: World) -> None:
    plan = world.run(write("a", "1"))
    plan("apply", "--yes", "--branch", "one").ok()
    commit = world.project.git("rev-parse", "one")
    world.project.git("update-ref", "-d", "refs/heads/one")
    lock = world.project.write(".git/refs/heads/one.lock", f"{commit}\n")
    change_ref(Git(str(world.project.path)), "refs/heads/one", commit, "refs/heads/one", commit)
    assert world.project.git("rev-parse", "one") == commit
    assert not lock.exists()


def test_a_lock_of_a_git_command_at_work_stays(world: World) -> None:
    plan = world.run(write("a", "1"))
    lock = world.project.write(".git/refs/heads/result.lock", "")
    answer = plan("apply", "--yes", "--branch", "result")
    assert answer.error["code"] == "apply-refused", answer
    assert lock.exists()
    lock.unlink()
    plan("apply", "--yes", "--branch", "result").ok()


# --- journals of SQLite ---------------------------------------------------------------------------


def test_a_snapshot_file_that_was_being_made_is_no_damage(world: World) -> None:
    plan = world.use(write("a", "1"))
    store = world.agents.data_dir / "snapshots" / f"{plan.id}.db"
    store.parent.mkdir(mode=0o700, exist_ok=True)
    _leave_hot_journal(store)
    world.agents("doctor").ok()
    _goes_on(plan)


def test_an_apply_that_was_cut_off_while_it_wrote_the_database_is_finished(world: World) -> None:
    plan, database = _large_database(world)
    _cut_off_in_the_database(world, plan, database)
    plan("apply", "--yes").ok()
    assert _rows(database) == [("changed",)]
    assert not Path(f"{database}-journal").exists()


def test_an_apply_that_was_cut_off_while_it_wrote_the_database_is_taken_back(world: World) -> None:
    plan, database = _large_database(world)
    _cut_off_in_the_database(world, plan, database)
    with closing(sqlite3.connect(plan.status["sandboxes"][1]["path"])) as db:
        db.execute("insert into t values ('by hand')")
        db.commit()
    answer = plan("apply", "--yes")
    assert answer.error["code"] == "apply-refused", answer
    assert "changed after the apply was prepared" in answer.error["message"]
    assert _rows(database) == [("one",)]
    assert not (world.project.path / "a").exists()


def _cut_off_in_the_database(world: World, plan: PlanHandle, database: Path) -> None:
    saved = world.top.with_name("saved")
    shutil.copytree(world.top, saved, symlinks=True)
    points = kill_points(lambda: plan("apply", "--yes").ok())
    late = [p for p in points if p.what.startswith("sqlite backup, ") and p.after]
    shutil.rmtree(world.top)
    shutil.copytree(saved, world.top, symlinks=True)
    killed(lambda: plan("apply", "--yes"), late[-2])
    assert is_hot(str(database))


def _large_database(world: World) -> tuple[PlanHandle, Path]:
    """More pages than SQLite keeps in memory, so that it writes before it is done."""
    database = world.top / "app.db"
    with closing(sqlite3.connect(database)) as db:
        db.execute("create table big (data)")
        db.executemany("insert into big values (?)", [(os.urandom(3000),) for _ in range(2000)])
        db.execute("create table t (x)")
        db.execute("insert into t values ('one')")
        db.commit()
    sql = "update t set x = 'changed'; update big set data = randomblob(3000)"
    steps = [
        write("a", "one\n"),
        {"name": "s", "tool": "sql.execute", "with": {"resource": "db", "sql": sql}},
    ]
    db = {"type": "sqlite", "path": str(database)}
    return world.run(*steps, resources={**CODE, "db": db}), database


def _rows(database: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(database)) as db:
        return db.execute("select x from t").fetchall()


def _leave_hot_journal(path: Path) -> None:
    """As a process leaves it that dies while it writes its first pages."""
    child = os.fork()
    if not child:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA cache_size=2")
        db.execute("CREATE TABLE first (x)")
        db.execute("BEGIN")
        db.execute("CREATE TABLE t (x)")
        db.executemany("INSERT INTO t VALUES (?)", [(b"x" * 3000,) for _ in range(50)])
        os._exit(0)
    os.waitpid(child, 0)
    assert is_hot(str(path))
