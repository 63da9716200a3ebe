"""What a step can leave as a database or beside it: none of our commands is led out by it."""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.journals import journal_naming, journal_of
from tests.support.outside import nothing_happens
from tests.support.world import PlanHandle, Step, World

REQUIRED = {"mode": "required"}
MODES = ["delete", "truncate", "persist", "wal"]


class Shop:
    """A user's database, and beside it what an attacker would like to reach."""

    def __init__(self, world: World, mode: str = "delete") -> None:
        self.world = world
        self.path = world.top / "shop" / "app.db"
        self.out = world.top / "out"
        self.ammunition = world.top / "ammunition"
        for folder in (self.path.parent, self.out, self.ammunition):
            folder.mkdir()
        (self.out / "victim").write_text("theirs\n")
        self.sql(
            f"PRAGMA journal_mode={mode}",
            "CREATE TABLE items (name TEXT)",
            "INSERT INTO items VALUES ('one')",
        )

    def sql(self, *statements: str, path: Path | None = None) -> list[Any]:
        with closing(sqlite3.connect(path or self.path, isolation_level=None)) as db:
            return [row for text in statements for row in db.execute(text).fetchall()]

    def loaded(self, data: bytes, name: str = "planted") -> Path:
        """A file that a step can read, for it to copy."""
        place = self.ammunition / name
        place.write_bytes(data)
        return place

    def use(self, *steps: Step, **confinement: Any) -> PlanHandle:
        return self.world.use(
            *steps,
            resources={"db": {"type": "sqlite", "path": str(self.path)}},
            confinement=confinement or REQUIRED,
        )

    def sandbox(self, plan: PlanHandle) -> Path:
        return Path(plan.status["sandboxes"][0]["path"])

    def outside(self):
        return nothing_happens(self.out, self.path.parent)


def sh(command: str, name: str = "work") -> Step:
    return {"name": name, "tool": "shell", "with": {"resource": "db", "command": command}}


def sql(tool: str, text: str) -> Step:
    return {"name": tool, "tool": tool, "with": {"resource": "db", "sql": text}}


def rows(shop: Shop, plan: PlanHandle) -> list[Any]:
    return shop.sql("SELECT name FROM items", path=shop.sandbox(plan))


def ends(plan: PlanHandle) -> tuple[str, str]:
    groups = plan.groups
    return groups[0].group_id, groups[-1].group_id


@pytest.fixture(params=MODES)
def shop(world: World, request: pytest.FixtureRequest) -> Shop:
    return Shop(world, request.param)


# In an order in which one plan can go through all of them.
COMMANDS: dict[str, Callable[[PlanHandle], Any]] = {
    "checkpoint create": lambda plan: plan("checkpoint", "create", "--label", "x").ok(),
    "checkpoint list": lambda plan: plan("checkpoint", "list").ok(),
    "checkpoint diff": lambda plan: plan("checkpoint", "diff", "{}", *ends(plan)).ok(),
    "checkpoint verify": lambda plan: plan("checkpoint", "verify").ok(),
    "status": lambda plan: plan("status").ok(),
    "diff": lambda plan: plan("diff").ok(),
    "doctor": lambda plan: plan.agents("doctor").ok(),
    "doctor --fix": lambda plan: plan.agents("doctor", "--fix").ok(),
    "store verify": lambda plan: plan.agents("store", "verify").ok(),
    "rollback --dry-run": lambda plan: plan("rollback", "--dry-run", "{}", ends(plan)[0]).ok(),
    "rollback": lambda plan: plan.rollback(ends(plan)[0]).ok(),
    "resume --dry-run": lambda plan: plan("resume", "--dry-run").ok(),
    "resume": lambda plan: plan("resume").ok(),
    "execute": lambda plan: plan("execute").ok(),
    "apply": lambda plan: plan("apply", "--yes").ok(),
}


# --- a journal that names another file ------------------------------------------------------------


@pytest.mark.parametrize("confinement", [REQUIRED, {"mode": "off"}], ids=["required", "off"])
def test_a_step_that_plants_a_journal_removes_nothing(
    shop: Shop, confinement: dict[str, str]
) -> None:
    victim = shop.out / "victim"
    planted = shop.loaded(journal_naming(victim, shop.path))
    plan = shop.use(
        sh(f"cp {planted} app.db-journal", "plant"),
        sql("sql.query", "SELECT name FROM items"),
        sql("sql.execute", "INSERT INTO items VALUES ('two')"),
        **confinement,
    )
    with shop.outside():
        plan.execute().ok()
    assert rows(shop, plan) == [("one",), ("two",)]
    told = [plan("checkpoint", "show", "{}", group.group_id).ok().out for group in plan.groups]
    assert sum(f"app.db-journal names {victim}, which was left alone" in text for text in told) == 1


def test_no_command_removes_what_a_journal_names(shop: Shop) -> None:
    plan = shop.use(sh("true"), sql("sql.execute", "INSERT INTO items VALUES ('two')"))
    plan.execute().ok()
    journal = Path(f"{shop.sandbox(plan)}-journal")
    for name, command in COMMANDS.items():
        journal.write_bytes(journal_naming(shop.out / "victim", shop.sandbox(plan)))
        with nothing_happens(shop.out):
            command(plan)
        assert name == "apply" or shop.sql("SELECT name FROM items") == [("one",)]
    assert shop.sql("SELECT name FROM items") == [("one",), ("two",)]


def test_our_own_records_are_not_removed_either(shop: Shop) -> None:
    data = shop.world.agents.data_dir
    plan = shop.use(sh("true"))
    plan.execute().ok()
    journal = Path(f"{shop.sandbox(plan)}-journal")
    for victim in (data / "cleveragents.db", *(data / "snapshots").iterdir()):
        journal.write_bytes(journal_naming(victim, shop.sandbox(plan)))
        plan("checkpoint", "create", "--label", victim.name).ok()
        assert victim.exists()
        assert not journal.exists() or not journal.read_bytes()[:1].strip(b"\0")
    plan("checkpoint", "verify").ok()


def test_a_journal_beside_a_childs_database_or_its_parents_removes_nothing(shop: Shop) -> None:
    planted = shop.loaded(journal_naming(shop.out / "victim", shop.path))
    plant = sh(f"cp {planted} app.db-journal", "plant")
    insert = sql("sql.execute", "INSERT INTO items VALUES ('two')")
    child = {"name": "child", "steps": [insert, plant]}
    plan = shop.use(plant, {"name": "spawn", "subplans": {"plans": [child]}})
    with shop.outside():
        plan.execute().ok()
    assert rows(shop, plan) == [("one",), ("two",)]
    plan("apply", "--yes").ok()
    assert shop.sql("SELECT name FROM items") == [("one",), ("two",)]
    assert (shop.out / "victim").read_text() == "theirs\n"


def test_a_journal_without_another_name_is_rolled_back_in_the_sandbox(shop: Shop) -> None:
    planted = shop.loaded(journal_of(shop.path, pages=1))
    plan = shop.use(sh(f"cp {planted} app.db-journal"))
    with shop.outside():
        plan.execute().ok()
        plan("diff").ok()
    assert shop.sandbox(plan).stat().st_size == 4096
    plan.rollback(ends(plan)[0]).ok()
    assert rows(shop, plan) == [("one",)]


# --- what poses as a side file --------------------------------------------------------------------

POSING = {
    "link": "ln -s $OUT/victim $NAME",
    "link to nothing": "ln -s $OUT/gone $NAME",
    "folder": "mkdir $NAME; echo x > $NAME/x",
    "pipe": "mkfifo $NAME",
    "second name": "echo x > other; ln other $NAME",
}


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("way", POSING)
def test_what_poses_as_a_side_file_is_left_alone_and_keeps_nobody(
    world: World, way: str, suffix: str
) -> None:
    shop = Shop(world, "wal" if suffix == "-wal" else "delete")
    command = POSING[way].replace("$OUT", str(shop.out)).replace("$NAME", f"app.db{suffix}")
    plan = shop.use(sh(command), sql("sql.query", "SELECT 1"))
    with shop.outside():
        assert "none of SQLite's own files" in plan.execute().error["message"]
        for name in ("checkpoint create", "diff", "status", "doctor", "rollback --dry-run"):
            COMMANDS[name](plan)
        assert rows(shop, plan.rollback(ends(plan)[0]).ok() and plan) == [("one",)]
    assert [p.name for p in shop.sandbox(plan).parent.iterdir() if suffix in p.name] == []


@pytest.mark.parametrize(
    "command",
    [
        "rm app.db; mkfifo app.db",
        "rm app.db; ln -s $OUT/victim app.db",
        "rm app.db; mkdir app.db",
        "rm app.db; echo x > other; ln other app.db",
        "mkfifo .cleveragents-restore-app.db app.db.cleveragents-new app.db.cleveragents-draft",
        "for n in app.db.cleveragents-new app.db.cleveragents-draft"
        " .cleveragents-restore-app.db; do ln -s $OUT/victim $n; done",
    ],
)
def test_what_stands_in_place_of_the_database_leads_nowhere(world: World, command: str) -> None:
    shop = Shop(world)
    planted = sh(command.replace("$OUT", str(shop.out)))
    child = {"name": "child", "steps": [sql("sql.execute", "INSERT INTO items VALUES ('two')")]}
    plan = shop.use(sh("true", "begin"), planted, {"name": "spawn", "subplans": {"plans": [child]}})
    with shop.outside():
        plan.execute()
        for name in ("checkpoint create", "diff", "status", "doctor", "rollback --dry-run"):
            COMMANDS[name](plan)
        plan.rollback(ends(plan)[0]).ok()
        assert rows(shop, plan) == [("one",)]


# --- databases that lie ---------------------------------------------------------------------------

HOSTILE = {
    "extension": "CREATE VIEW v AS SELECT load_extension('$OUT/x.so');"
    "CREATE TABLE g (a, b AS (abs(a))); CREATE INDEX i ON g (abs(a));"
    "CREATE TRIGGER t AFTER INSERT ON items BEGIN SELECT load_extension('$OUT/x.so'); END;",
    "garbage": "PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql='CREATE NONSENSE (';",
    "itself": "CREATE TABLE x (a); PRAGMA writable_schema=ON;"
    "UPDATE sqlite_master SET rootpage=1 WHERE name='x';",
    "no text": "PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql=x'00ff', name=x'ff00';",
    "a view that is a table": "PRAGMA writable_schema=ON; UPDATE sqlite_master SET type='table',"
    "sql='CREATE VIRTUAL TABLE items USING nothing(\"$OUT/victim\")';",
    "large values": "CREATE TABLE large (a, b AS (zeroblob(900000000)));"
    "INSERT INTO large (a) VALUES (1), (2); CREATE TABLE deep (a, b AS (hex(zeroblob(a))));",
    "virtual": "CREATE VIRTUAL TABLE f USING fts5(a); DROP TABLE f_data;",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_that_lies_is_captured_compared_and_refused_or_applied(
    world: World, kind: str, mode: str
) -> None:
    shop = Shop(world, mode)
    lying = shop.ammunition / "lying.db"
    shop.sql(f"PRAGMA journal_mode={mode}", "CREATE TABLE items (name TEXT)", path=lying)
    with closing(sqlite3.connect(lying, isolation_level=None)) as db:
        db.executescript(HOSTILE[kind].replace("$OUT", str(shop.out)))
        log = Path(f"{lying}-wal")
        sides = f"; cp {log} app.db-wal" if log.exists() else ""
        plan = shop.use(sh(f"cp {lying} app.db{sides}"))
        with shop.outside():
            plan.execute().ok()
    with shop.outside():
        for name in ("checkpoint create", "diff", "checkpoint diff", "checkpoint verify"):
            COMMANDS[name](plan)
    with nothing_happens(shop.out):
        answer = plan("apply", "--yes")
    if answer.code:
        assert answer.error["code"] == "apply-refused"
        assert shop.sql("SELECT name FROM items") == [("one",)]
        with shop.outside():
            plan.rollback(ends(plan)[0]).ok()
        assert rows(shop, plan) == [("one",)]


def test_a_log_is_folded_although_its_schema_is_garbage(world: World) -> None:
    shop = Shop(world, "wal")
    script = shop.loaded(
        b"import os, sqlite3\n"
        b"d = sqlite3.connect('app.db', isolation_level=None)\n"
        b"d.execute('PRAGMA writable_schema=ON')\n"
        b"d.execute(\"UPDATE sqlite_master SET sql='nonsense('\")\n"
        b"os._exit(0)\n"
    )
    plan = shop.use(sh(f"{sys.executable} {script}"))
    plan.execute().ok()
    assert [p.name for p in shop.sandbox(plan).parent.iterdir()] == ["app.db"]
    assert b"nonsense(" in shop.sandbox(plan).read_bytes()


# --- what other resources of a plan bring beside the user's database ------------------------------


def beside(shop: Shop, *steps: Step) -> PlanHandle:
    """A plan on the database and on the folder around it."""
    folder = {"type": "fs-directory", "path": str(shop.path.parent), "exclude": ["app.db"]}
    return shop.world.use(
        *steps,
        resources={"db": {"type": "sqlite", "path": str(shop.path)}, "all": folder},
        confinement=REQUIRED,
    )


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_no_other_resource_brings_a_journal_beside_the_database(
    world: World, mode: str, suffix: str
) -> None:
    shop = Shop(world, mode)
    planted = shop.loaded(journal_naming(shop.out / "victim", shop.path))
    bring = {"resource": "all", "command": f"cp {planted} app.db{suffix}"}
    plan = beside(
        shop,
        {"name": "bring", "tool": "shell", "with": bring},
        sql("sql.execute", "INSERT INTO items VALUES ('two')"),
    )
    plan.execute().ok()
    with nothing_happens(shop.out):
        answer = plan("apply", "--yes").ok()
    assert f"belongs to `db`: app.db{suffix}" in answer.out + answer.err
    brought = Path(f"{shop.path}{suffix}")
    assert not brought.exists() or brought.read_bytes() != planted.read_bytes()
    assert shop.sql("SELECT name FROM items") == [("one",), ("two",)]


def test_a_journal_beside_the_users_database_is_not_played_back_by_apply(shop: Shop) -> None:
    plan = shop.use(sql("sql.execute", "INSERT INTO items VALUES ('two')"))
    plan.execute().ok()
    journal = Path(f"{shop.path}-journal")
    journal.write_bytes(journal_naming(shop.out / "victim", shop.path))
    with shop.outside():
        answer = plan("apply", "--yes")
    assert answer.error["code"] == "apply-refused"
    assert "a journal that is not finished with" in answer.error["message"]
    journal.unlink()
    plan("apply", "--yes").ok()
    assert shop.sql("SELECT name FROM items") == [("one",), ("two",)]
