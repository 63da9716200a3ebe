"""What a power cut has left is found and mended, by the next command or by `agents doctor`."""

import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.restarts import lose_bytes, restart
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, shell, write


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
    plan = world.run(write("a", "1"))
    (pin,) = pins(world)
    pin.write_bytes(b"")
    plan("apply", "--yes").ok()
    assert pins(world) == []
    world.agents("doctor").ok()


def _goes_on(plan: PlanHandle) -> None:
    plan("execute").ok()
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
    first = next(group for group in plan.groups if group.label.startswith("decision 1"))
    lose_bytes(world.agents, plan.sandbox / "a", "a")
    restart(world.agents)
    plan.rollback(first.group_id).ok()
    assert (plan.sandbox / "a").read_text() == "one\n"


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
