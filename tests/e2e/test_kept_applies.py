"""How long an apply can be undone, what says so, and what goes when it was long enough."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.projects import Project
from tests.support.terminals import asked, asking
from tests.support.three_resources import Three
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, shell

CHANGES = "echo new > new.txt; echo 2 > src/app.py; rm src/old.py"


@pytest.fixture
def three(world: World) -> Three:
    return Three(world)


def applied(world: World) -> PlanHandle:
    plan = world.run(shell(CHANGES, "change"))
    plan("apply", "--yes").ok()
    return plan


def kept_in(project: Project) -> list[Path]:
    return sorted((project.path / ".git").glob("cleveragents-*"))


def test_an_apply_says_until_when_and_so_do_status_and_log(world: World) -> None:
    plan = world.run(shell(CHANGES, "change"))
    done = plan("apply", "--yes").ok()
    until = done.data["undo_until"]
    assert any("agents undo --plan" in line for line in done.envelope["messages"])
    for words in (("status",), ("log",)):
        found = world.agents(*words).ok()
        assert found.data["apply"] == {
            "state": "applied",
            "until": until,
            "next": f"agents undo --plan {plan.id}",
        }
        assert any("can be undone until" in line for line in found.envelope["messages"])
    world.agents("undo", "--yes").ok()
    found = world.agents("status").ok()
    assert found.data["apply"]["state"] == "undone"
    assert found.data["apply"]["next"] == f"agents redo --plan {plan.id}"
    assert found.data["state"] == "applied"


def test_what_is_undone_is_not_undone_twice_nor_applied_nor_redone_twice(world: World) -> None:
    plan = applied(world)
    assert world.agents("redo", "--yes").error["code"] == "nothing-to-redo"
    assert world.agents("undo", "--yes", "-n", "2").error["code"] == "nothing-to-undo"
    world.agents("undo", "--yes").ok()
    assert world.agents("undo", "--yes").error["code"] == "apply-undone"
    assert plan("apply", "--yes").error["code"] == "apply-undone"
    assert world.agents("redo", "--yes", "-n", "2").error["code"] == "nothing-to-redo"
    world.agents("redo", "--yes").ok()
    assert plan("apply", "--yes").error["code"] == "plan-applied"


def test_it_asks_with_what_would_change(world: World) -> None:
    applied(world)
    before = world.project.fingerprint()
    with asking(world, "undo") as (process, terminal):
        shown = asked(terminal, b"[y/N]").decode()
        os.write(terminal, b"n\n")
        assert process.wait(60) == 1
    assert "src/app.py" in shown
    assert "moves back" in shown
    assert world.project.fingerprint() == before
    previewed = world.agents("undo", "--dry-run").ok()
    assert previewed.data["would"] == "undo"
    assert "src/app.py" in {file["path"] for file in previewed.data["files"]}
    assert world.project.fingerprint() == before


def test_with_nothing_kept_an_apply_is_final_and_leaves_nothing(three: Three) -> None:
    three.world.agents("config", "set", "apply.keep", "0").ok()
    done = three.apply().ok()
    assert done.data["undo_until"] is None
    assert three.world.agents("undo", "--yes").error["code"] == "apply-not-kept"
    assert not kept_in(three.world.project)
    assert not list((three.world.agents.data_dir / "snapshots").iterdir())
    assert "apply" not in three.world.agents("status").ok().data


def test_what_is_kept_is_counted_and_goes_when_it_was_kept_long_enough(three: Three) -> None:
    world = three.world
    three.apply().ok()
    room = world.agents("store", "status").ok().data
    assert room["kept_bytes"] > 0
    assert room["plans"][0]["kept_bytes"] == room["kept_bytes"]
    assert room["plans"][0]["size_bytes"] > 0
    world.agents("doctor").ok()
    world.agents("doctor", "--fix", "--yes").ok()
    assert world.agents("store", "status").ok().data["kept_bytes"] == room["kept_bytes"]
    backdate(world)
    after = three.state()
    assert world.agents("undo", "--yes").error["code"] == "apply-not-kept"
    assert "until" not in " ".join(world.agents("log").ok().envelope["messages"])
    world.agents("prune", "--older-than", "99d", "--yes").ok()
    assert not kept_in(world.project)
    assert not [line for line in world.project.traces() if three.plan.id.encode() in line]
    left = {row["plan_id"] for row in world.agents("store", "status").ok().data["plans"]}
    assert three.plan.id not in left
    assert three.state() == after


def test_pruning_the_plan_lets_go_of_what_it_kept(three: Three) -> None:
    three.apply().ok()
    after = three.state()
    three.world.agents("prune", "--older-than", "0m", "--yes").ok()
    assert not kept_in(three.world.project)
    assert not three.world.project.traces()
    assert not list((three.world.agents.data_dir / "snapshots").iterdir())
    assert three.state() == after


def test_gc_takes_nothing_that_is_needed(world: World) -> None:
    applied(world)
    after = (tree_of(world.project.path), world.project.head)
    world.agents("undo", "--yes").ok()
    world.project.git("reflog", "expire", "--expire=now", "--all")
    world.project.git("gc", "-q", "--prune=now")
    world.agents("redo", "--yes").ok()
    assert (tree_of(world.project.path), world.project.head) == after


def backdate(world: World) -> None:
    """As if it had been applied long ago."""
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as db:
        db.execute("update applied_changes set until = '2001-01-01T00:00:00.000000+00:00'")
        db.commit()


def test_the_next_apply_lets_go_of_what_was_kept_long_enough(world: World) -> None:
    old = applied(world)
    new = world.run(shell("echo more > more.txt"))
    backdate(world)
    new("apply", "--yes").ok()
    assert [path.name.startswith("cleveragents-apply-") for path in kept_in(world.project)] == [
        True
    ]
    assert not [line for line in world.project.traces() if old.id.encode() in line]
    world.agents("undo", "--yes").ok()


def test_letting_go_that_was_cut_off_is_finished(world: World) -> None:
    applied(world)
    with closing(sqlite3.connect(world.agents.data_dir / "cleveragents.db")) as db:
        db.execute("update applied_changes set freed = 1")
        db.commit()
    assert world.agents("undo", "--yes").error["code"] == "apply-not-kept"
    assert kept_in(world.project)
    world.agents("prune", "--older-than", "99d", "--yes").ok()
    assert not kept_in(world.project)


def test_discarding_the_plan_lets_go_too(world: World) -> None:
    applied(world)
    world.agents("discard", "--yes").ok()
    assert not kept_in(world.project)
    assert not world.project.traces()
    assert world.agents("undo", "--yes").error["code"] == "apply-not-kept"
