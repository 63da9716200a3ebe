"""Plans that change code and a database together, through the command."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.trees import Tree, tree_of
from tests.support.world import PlanHandle, Step, World, write

from cleveragents.infrastructure.sqlite import worker


def sql(text: str, name: str = "change", **more: Any) -> Step:
    arguments = {"resource": "db", "sql": text, **more}
    return {"name": name, "tool": "sql.execute", "with": arguments}


class Shop:
    """A project with its database beside it."""

    def __init__(self, world: World, journal: str) -> None:
        self.world = world
        self.path = world.top / "shop" / "app.db"
        self.path.parent.mkdir()
        self.sql(
            f"PRAGMA journal_mode={journal}",
            "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)",
            "INSERT INTO items (name) VALUES ('one'), ('two')",
        )
        self.resources = {
            "code": {"type": "git-checkout", "path": "."},
            "db": {"type": "sqlite", "path": str(self.path)},
        }

    def sql(self, *statements: str, path: Path | None = None) -> list[Any]:
        with closing(sqlite3.connect(path or self.path, isolation_level=None)) as db:
            return [row for text in statements for row in db.execute(text).fetchall()]

    def names(self, path: Path | None = None) -> list[str]:
        return [name for (name,) in self.sql("SELECT name FROM items ORDER BY id", path=path)]

    def run(self, *steps: Step) -> PlanHandle:
        return self.world.run(*steps, resources=self.resources)

    def use(self, *steps: Step) -> PlanHandle:
        return self.world.use(*steps, resources=self.resources)


def sandboxes(plan: PlanHandle) -> dict[str, Path]:
    return {item["resource"]: Path(item["path"]) for item in plan.status["sandboxes"]}


@pytest.fixture(params=["delete", "wal"])
def shop(world: World, request: pytest.FixtureRequest) -> Shop:
    return Shop(world, request.param)


def both(plan: PlanHandle) -> tuple[Tree, bytes]:
    paths = sandboxes(plan)
    return tree_of(paths["code"]), paths["db"].read_bytes()


def test_one_rollback_takes_code_and_database_back_together(shop: Shop) -> None:
    plan = shop.use(
        write("src/new.py", "new\n", "code"),
        sql("INSERT INTO items (name) VALUES (:n)", "row", parameters={"n": "three"}),
        {
            "name": "script",
            "tool": "shell",
            "with": {
                "resource": "code",
                "command": f'{sys.executable} -c "import os, sqlite3;'
                "d = sqlite3.connect(os.environ['CLEVERAGENTS_SANDBOX_DB']);"
                "d.execute('DELETE FROM items WHERE id=1'); d.commit()\" && echo more > more.txt",
            },
        },
        sql("DROP TABLE items; CREATE TABLE other (a)", "drop"),
    )
    plan.execute().ok()
    end = both(plan)
    plan.rollback(plan.group("before sql.execute drop").group_id).ok()
    before_drop = both(plan)
    assert shop.names(sandboxes(plan)["db"]) == ["two", "three"]
    reverted = plan.rollback(plan.group("before sql.execute row").group_id).ok().data
    assert {item["file"] for item in reverted["changes_reverted"]} == {"db:app.db", "code:more.txt"}
    tree, _ = both(plan)
    assert b"src/new.py" in tree
    assert b"more.txt" not in tree
    assert shop.names(sandboxes(plan)["db"]) == ["one", "two"]
    undo = next(g for g in reversed(plan.groups) if g.reason == "before_rollback")
    plan.rollback(undo.group_id).ok()
    assert both(plan) == before_drop
    plan.execute().ok()
    assert both(plan)[0] == end[0]
    assert shop.names() == ["one", "two"]


def test_an_applied_plan_changes_the_commit_and_the_database(shop: Shop) -> None:
    shop.world.keep_nothing()
    plan = shop.run(write("page.py", "x\n"), sql("UPDATE items SET name='uno' WHERE id=1"))
    shown = plan("diff").ok().data
    assert {"app.db/items"} <= {item["path"].split(":")[-1] for item in shown["files"]}
    assert "- (1, 'one')" in shown["patch"]
    assert shop.names() == ["one", "two"]
    head = shop.world.project.head
    plan("apply", "--yes").ok()
    assert shop.names() == ["uno", "two"]
    assert shop.world.project.head != head
    assert [p.name for p in shop.path.parent.iterdir()] == ["app.db"]
    assert plan("diff").ok().data["patch"] == shown["patch"]
    data = shop.world.agents.data_dir
    assert list((data / "sandboxes").iterdir()) == list((data / "snapshots").iterdir()) == []


def test_a_database_that_moved_on_stops_the_whole_apply(shop: Shop) -> None:
    plan = shop.run(write("page.py", "x\n"), sql("UPDATE items SET name='uno' WHERE id=1"))
    shop.sql("INSERT INTO items (name) VALUES ('mine')")
    head = shop.world.project.head
    answer = plan("apply", "--yes")
    assert answer.code == 1
    assert answer.error["code"] == "apply-conflict"
    assert str(shop.path) in answer.error["message"]
    assert shop.names() == ["one", "two", "mine"]
    assert shop.world.project.head == head
    assert plan.status["state"] == "constrained"


def test_nothing_is_written_beside_the_database_before_apply(shop: Shop) -> None:
    before = (shop.path.read_bytes(), shop.path.stat().st_mtime_ns)
    plan = shop.run(sql("DELETE FROM items"))
    plan("diff").ok()
    plan.rollback(plan.groups[0].group_id).ok()
    plan("cancel").ok()
    assert (shop.path.read_bytes(), shop.path.stat().st_mtime_ns) == before
    assert [p.name for p in shop.path.parent.iterdir()] == ["app.db"]


def test_a_plan_begins_while_another_process_writes(world: World) -> None:
    shop = Shop(world, "wal")
    script = (
        "import sqlite3, sys, time\n"
        "d = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)\n"
        "while True:\n"
        "    d.execute(\"INSERT INTO items (name) VALUES ('x')\"); print(flush=True)\n"
        "    time.sleep(0.002)"
    )
    argv = [sys.executable, "-c", script, str(shop.path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        plan = shop.run(sql("CREATE TABLE new (a)"))
        writer.kill()
    path = sandboxes(plan)["db"]
    assert shop.sql("PRAGMA integrity_check", path=path) == [("ok",)]
    assert len(shop.names()) > len(shop.names(path)) > 2
    assert plan("apply", "--yes").error["code"] == "apply-conflict"


def test_a_failed_statement_fails_the_step_and_can_be_rolled_back(shop: Shop) -> None:
    plan = shop.use(sql("DELETE FROM items; INSERT INTO nowhere VALUES (1)"))
    answer = plan.execute()
    assert answer.error["code"] == "step-failed"
    assert "no such table: nowhere" in answer.error["message"]
    assert shop.names(sandboxes(plan)["db"]) == ["one", "two"]
    plan.rollback(plan.groups[0].group_id).ok()


def test_as_long_as_no_journal_holds_anything_sqlite_is_not_even_started(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_ARGV", ("/no/such/program",))
    change = f"{sys.executable} -c \"import sqlite3; d = sqlite3.connect('app.db'); d.execute("
    change += "'DELETE FROM items WHERE id=1'); d.commit()\""
    step = {"name": "change", "tool": "shell", "with": {"resource": "db", "command": change}}
    plan = shop.run(write("page.py", "x\n"), step)
    plan("checkpoint", "create", "--label", "now").ok()
    plan("checkpoint", "verify").ok()
    plan.rollback(plan.groups[0].group_id).ok()
    assert shop.names(sandboxes(plan)["db"]) == ["one", "two"]
    assert "/no/such/program could not be started" in plan("diff").error["message"]


def test_a_query_is_shown_and_makes_no_checkpoint(shop: Shop) -> None:
    query = {"name": "look", "tool": "sql.query", "with": {"resource": "db", "sql": "SELECT 1"}}
    plan = shop.run(query)
    assert "on_tool_write" not in plan.reasons


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("file.write", {"resource": "db", "path": "x", "content": "y"}, "is a database"),
        ("sql.execute", {"resource": "code", "sql": "SELECT 1"}, "needs a database"),
        ("sql.execute", {"resource": "db"}, "needs `sql`"),
    ],
)
def test_a_tool_on_the_wrong_resource_is_refused_at_once(
    world: World, tool: str, arguments: dict[str, str], problem: str
) -> None:
    shop = Shop(world, "delete")
    step = {"name": "s", "tool": tool, "with": arguments}
    content = {
        "name": "a",
        "description": "d",
        "resources": shop.resources,
        "steps": [step],
    }
    answer = world.agents("plan", "use", world.write_action(content))
    assert answer.error["code"] == "action-invalid"
    assert problem in answer.error["message"]
    assert world.plan_count() == 0


def test_what_is_no_database_is_refused_at_once(world: World) -> None:
    shop = Shop(world, "delete")
    shop.path.write_bytes(b"not a database at all")
    path = world.write_action(
        {"name": "a", "description": "d", "resources": shop.resources, "steps": [sql("SELECT 1")]}
    )
    answer = world.agents("plan", "use", path)
    assert answer.error["code"] == "resource-unusable"
    assert world.plan_count() == 0
