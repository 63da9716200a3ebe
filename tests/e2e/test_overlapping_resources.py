"""Resources inside of each other: what is inside belongs to the inner one, and both are applied."""

import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.refusals import refused
from tests.support.submodules import INNER, LIB, WithSubmodules
from tests.support.world import PlanHandle, Step, World, write

CODE = {"type": "git-checkout", "path": "."}
DB = {"type": "sqlite", "path": "app.db"}
ASSETS = {"type": "fs-directory", "path": "assets"}


def step(tool: str, resource: str, **arguments: Any) -> Step:
    return {"name": resource, "tool": tool, "with": {"resource": resource, **arguments}}


INSERT = step("sql.execute", "db", sql="insert into t values (2)")
ASSET = step("file.write", "assets", path="one.txt", content="by assets")
BOTH = (write("src/x.py", "1"), INSERT, ASSET)


def furnished(world: World, kind: str) -> Path:
    """A database and a folder in the project: ignored, untracked or tracked."""
    top = world.project.path
    _make_database(top / "app.db")
    (top / "assets").mkdir()
    (top / "assets/one.txt").write_text("one")
    (top / "assets/two.txt").write_text("two")
    if kind == "ignored":
        (top / ".gitignore").write_text("app.db*\nassets/\n")
    if kind != "untracked":
        world.project.git("add", "-A")
        world.project.git("commit", "-qm", kind)
    return top


def _make_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript("create table t (id); insert into t values (1)")


def rows(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as db:
        return [row for (row,) in db.execute("select id from t order by id")]


def run(
    world: World,
    *steps: Step,
    options: tuple[str, ...] = (),
    resources: Mapping[str, Any] | None = None,
    **more: Any,
) -> PlanHandle:
    resources = resources or {"code": CODE, "db": DB, "assets": ASSETS}
    action = {"name": "demo", "description": "d", "resources": resources, "steps": list(steps)}
    action |= more
    used = world.agents("plan", "use", *options, world.write_action(action)).ok()
    plan = PlanHandle(world.agents, used.data["plan_id"])
    plan.execute().ok()
    return plan


# --- the ordinary cases -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ignored", "untracked", "tracked"])
@pytest.mark.parametrize("options", [(), ("--include-uncommitted",)], ids=["", "uncommitted"])
def test_a_database_and_a_folder_in_the_checkout_are_applied_with_it(
    world: World, kind: str, options: tuple[str, ...]
) -> None:
    top = furnished(world, kind)
    plan = run(world, *BOTH, options=options)
    before = plan.tree()
    plan.rollback("start").ok()
    plan("resume").ok()
    assert plan.tree() == before

    plan("apply", "--yes").ok()

    assert rows(top / "app.db") == [1, 2]
    assert (top / "assets/one.txt").read_text() == "by assets"
    assert world.project.git("show", "--name-only", "--format=", "HEAD") == "src/x.py"


# --- written through the outer one --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ignored", "untracked", "tracked"])
def test_what_is_written_there_in_the_outer_sandbox_is_told_and_not_applied(
    world: World, kind: str
) -> None:
    """It used to be a conflict that nobody could decide, and that was blamed on the user. Where
    nothing holds a step inside, each sandbox is where it is, and none lies in another."""
    top = furnished(world, kind)
    outer = "echo by code > assets/one.txt; echo more > assets/new.txt; echo x > app.db; rm -f a*-x"
    command = step("shell", "code", command=f"mkdir -p assets; {outer}; echo 1 > own.txt")
    plan = run(world, command, INSERT, ASSET, confinement={"mode": "off"})

    shown = plan("diff").ok()
    assert "own.txt" in shown.out
    done = plan("apply", "--yes").ok()

    told = done.out + done.err
    if kind != "ignored":  # what is ignored is never applied, and was always told
        assert "belongs to `assets`: assets/new.txt, assets/one.txt" in told
        assert "belongs to `db`: app.db" in told
    assert (top / "own.txt").exists()
    assert (top / "assets/one.txt").read_text() == "by assets"
    assert not (top / "assets/new.txt").exists()
    assert rows(top / "app.db") == [1, 2]
    assert (Path(plan.status["sandboxes"][0]["path"]) / "assets/new.txt").read_text() == "more\n"
    assert world.project.git("show", "--name-only", "--format=", "HEAD") == "own.txt"


@pytest.mark.parametrize("kind", ["ignored", "untracked", "tracked"])
def test_the_folder_of_another_resource_is_at_its_place_in_the_checkout(
    world: World, kind: str
) -> None:
    top = furnished(world, kind)
    command = "echo more > assets/new.txt; cat assets/one.txt"
    plan = run(world, step("shell", "code", command=command))
    assert not (top / "assets/new.txt").exists()
    plan("apply", "--yes").ok()
    assert (top / "assets/new.txt").read_text() == "more\n"


@pytest.mark.parametrize(
    "harm",
    ["echo y > sub/a", "rm -r sub", "rm -r sub; echo file > sub", "rm -r deep; echo file > deep"],
)
def test_the_same_in_a_plain_folder(world: World, harm: str) -> None:
    top = world.top / "folder"
    for name in ("sub", "deep/in"):
        (top / name).mkdir(parents=True)
        (top / name / "a").write_text("a")
    _make_database(top / "app.db")
    resources = {
        "all": {"type": "fs-directory", "path": str(top)},
        "sub": {"type": "fs-directory", "path": str(top / "sub")},
        "deep": {"type": "fs-directory", "path": str(top / "deep/in")},
        "db": {"type": "sqlite", "path": str(top / "app.db")},
    }
    plan = run(
        world,
        step("shell", "all", command=f"{harm}; rm app.db; echo w > app.db-wal; echo 1 > own"),
        step("file.write", "sub", path="a", content="by sub"),
        step("file.write", "deep", path="a", content="by deep"),
        INSERT,
        resources=resources,
    )
    plan("diff").ok()
    done = plan("apply", "--yes").ok()
    assert "belongs to `db`: app.db, app.db-wal" in done.out + done.err
    assert (top / "sub/a").read_text() == "by sub"
    assert (top / "deep/in/a").read_text() == "by deep"
    assert rows(top / "app.db") == [1, 2]
    assert (top / "own").exists()
    assert not (top / "app.db-wal").exists()


def test_a_repository_inside_of_a_folder_is_applied_with_it(world: World) -> None:
    (world.top / "notes").write_text("n")
    resources = {
        "all": {"type": "fs-directory", "path": str(world.top / "ws")},
        "code": {"type": "git-checkout", "path": str(world.top / "ws/project")},
    }
    (world.top / "ws").mkdir()
    world.project.path.rename(world.top / "ws/project")
    world.agents = world.agents.at(world.top)
    plan = run(
        world,
        step("shell", "all", command="echo 1 > project/by-all; echo 1 > own"),
        step("file.write", "code", path="by-code", content="1"),
        resources=resources,
    )
    plan("apply", "--yes").ok()
    there = {path.name for path in (world.top / "ws").rglob("*")}
    assert {"own", "by-code", "by-all"} <= there
    shown = ["git", "-C", str(world.top / "ws/project"), "show", "--name-only", "--format="]
    assert "by-all" in subprocess.check_output(shown, text=True).split()


# --- what is said at the beginning --------------------------------------------------------------


def test_plan_use_says_whose_it_is(world: World) -> None:
    furnished(world, "tracked")
    resources = {"code": CODE, "db": DB, "assets": ASSETS}
    action = {"name": "d", "description": "d", "resources": resources, "steps": list(BOTH)}
    said = world.agents("plan", "use", world.write_action(action)).ok()
    told = said.out + said.err
    assert "code: assets belongs to `assets`" in told
    assert "code: app.db belongs to `db`" in told
    assert "app.db-wal" not in told


@pytest.mark.parametrize("inner", [LIB, INNER])
def test_what_is_in_a_submodule_of_the_checkout_is_refused(
    world: World, submodules: WithSubmodules, inner: str
) -> None:
    WithSubmodules(world, submodules)
    resources = {"code": CODE, "inner": {"type": "git-checkout", "path": inner}}
    action = {"name": "d", "description": "d", "resources": resources, "steps": [write("a", "1")]}
    said = refused(world.agents("plan", "use", world.write_action(action)), "resource-unusable")
    assert "leave `inner` out" in said
    assert world.plan_count() == 0
    assert not world.project.traces()
