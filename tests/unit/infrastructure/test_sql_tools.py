"""The tools `sql.execute` and `sql.query` on a real database, and what they keep SQL from doing."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.runners import database_workers, in_file, in_folder, runner_with

from cleveragents.application.ports.runtime import ToolContext
from cleveragents.domain.action import Action, ResourceSpec, Step
from cleveragents.domain.errors import ToolError, ToolTimeoutError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource_kinds import GIT_CHECKOUT, SQLITE
from cleveragents.infrastructure.tools.toolbox import ToolBox

PLAN = PlanId("01J00000000000000000000001")


class Bench:
    def __init__(self, top: Path) -> None:
        self.path = top / "db" / "app.db"
        self.path.parent.mkdir()
        with closing(sqlite3.connect(self.path)) as db:
            db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, size REAL)")
            db.execute("INSERT INTO t (name, size) VALUES ('ann', 1.5), ('bob', NULL)")
            db.commit()
        self.workers = database_workers()
        self.tools = ToolBox(runner_with({"PATH": "/usr/bin:/bin"}, 10_000), self.workers)
        self.action = Action(
            name="a",
            description="d",
            resources=(
                ResourceSpec(name="db", type=SQLITE.type, location=str(self.path)),
                ResourceSpec(name="code", type=GIT_CHECKOUT.type, location=str(top)),
            ),
            steps=(),
        )
        self.context = ToolContext(
            plan_id=PLAN, sandboxes={"db": in_file(self.path), "code": in_folder(top)}, timeout=5
        )

    def run(self, tool: str, sql: str, **more: Any):
        spec = self.tools.find(self.action, tool)
        return self.tools.run(spec, {"resource": "db", "sql": sql, **more}, self.context)

    def execute(self, sql: str, **more: Any):
        return self.run("sql.execute", sql, **more)

    def query(self, sql: str, **more: Any):
        return self.run("sql.query", sql, **more)

    def check(self, tool: str, **arguments: Any) -> list[str]:
        step = Step(name="s", tool=tool, arguments=arguments)
        return [problem.text for problem in self.tools.check(self.action, step)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_query_gives_an_aligned_table_and_the_values(bench: Bench) -> None:
    found = bench.query("SELECT * FROM t")
    assert found.output.splitlines() == [
        "id  name  size",
        "--  ----  ----",
        " 1  ann    1.5",
        " 2  bob   NULL",
        "2 rows",
    ]
    assert found.values["rows"] == [[1, "ann", 1.5], [2, "bob", None]]
    assert found.values["columns"] == ["id", "name", "size"]
    assert not found.values["truncated"]


def test_a_query_stops_at_its_limit(bench: Bench) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n"
    assert len(bench.query(numbers).values["rows"]) == 1000
    found = bench.query(numbers, limit=3)
    assert found.values["rows"] == [[1], [2], [3]]
    assert found.values["truncated"]
    with pytest.raises(ToolError, match="limit"):
        bench.query(numbers, limit=0)


def test_large_values_do_not_fill_the_memory(bench: Bench) -> None:
    found = bench.query("SELECT hex(zeroblob(400000)) FROM t, t AS u, t AS v")
    assert len(found.values["rows"]) == 2
    assert found.values["truncated"]


def test_values_that_json_cannot_hold_become_text(bench: Bench) -> None:
    found = bench.query("SELECT x'00ff', 9e999, CAST(x'ff' AS TEXT), NULL")
    assert found.values["rows"] == [["x'00ff'", "inf", "\\xff", None]]


def test_parameters_are_a_list_or_a_map(bench: Bench) -> None:
    bench.execute("INSERT INTO t (name) VALUES (?)", parameters=["cy'; DROP TABLE t; --"])
    bench.execute(
        "UPDATE t SET size=:s WHERE id=1; UPDATE t SET name=:n WHERE id=2",
        parameters={"s": 7, "n": "bo"},
    )
    found = bench.query("SELECT name FROM t WHERE id>=:i", parameters={"i": 2})
    assert found.values["rows"] == [["bo"], ["cy'; DROP TABLE t; --"]]
    assert bench.query("SELECT size FROM t WHERE id=?", parameters=[1]).values["rows"] == [[7.0]]


@pytest.mark.parametrize("parameters", [[1, 2], [[1]], [2**70], {"x": 1}, ["\ud800"]], ids=str)
def test_parameters_that_do_not_fit_are_refused(bench: Bench, parameters: object) -> None:
    with pytest.raises(ToolError):
        bench.execute("DELETE FROM t WHERE id=?", parameters=parameters)
    assert bench.query("SELECT count(*) FROM t").values["rows"] == [[2]]


def test_a_list_of_parameters_goes_with_one_statement(bench: Bench) -> None:
    with pytest.raises(ToolError, match="2") as caught:
        bench.execute("DELETE FROM t WHERE id=?; SELECT 1", parameters=[1])
    assert "map" in caught.value.hint


def test_statements_are_one_transaction(bench: Bench) -> None:
    with pytest.raises(ToolError, match="statement 3 of 3: UNIQUE") as caught:
        bench.execute(
            "CREATE TABLE u (a); INSERT INTO t (name) VALUES ('x'); INSERT INTO t (id) VALUES (1);"
        )
    assert "nothing was changed" in caught.value.hint
    assert bench.query("SELECT count(*) FROM sqlite_master").values["rows"] == [[1]]
    assert bench.query("SELECT count(*) FROM t").values["rows"] == [[2]]


def test_semicolons_in_texts_comments_and_triggers_end_no_statement(bench: Bench) -> None:
    done = bench.execute(
        """
        -- a comment; with a semicolon
        CREATE TABLE log (a);
        CREATE TRIGGER tr AFTER INSERT ON t BEGIN
            INSERT INTO log VALUES (new.name); INSERT INTO log VALUES ('second;');
        END;
        /* another; one */ INSERT INTO t (name) VALUES ('a;b');
        ;
        -- the end
        """
    )
    assert done.values["rows_changed"] == 3
    assert bench.query("SELECT a FROM log").values["rows"] == [["a;b"], ["second;"]]


def test_execute_gives_back_what_the_last_statement_returned(bench: Bench) -> None:
    done = bench.execute("INSERT INTO t (name) VALUES ('c'), ('d') RETURNING id")
    assert done.values["rows"] == [[3], [4]]
    assert done.output.endswith("2 rows changed")


def test_a_mistake_in_the_sql_is_named(bench: Bench) -> None:
    with pytest.raises(ToolError, match='near "SELCT": syntax error') as caught:
        bench.query("SELCT 1")
    assert "correct `sql`" in caught.value.hint
    with pytest.raises(ToolError, match="no such table: nowhere"):
        bench.execute("DELETE FROM nowhere")
    with pytest.raises(ToolError, match="0 statements"):
        bench.query("  -- nothing")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t (name) VALUES ('x')",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "UPDATE sqlite_master SET sql='x'",
        "CREATE TABLE u (a)",
        "DROP TABLE t",
        "CREATE TEMP TABLE u (a)",
        "PRAGMA user_version=3",
        "PRAGMA query_only=OFF",
        "PRAGMA journal_mode=WAL",
        "PRAGMA writable_schema=ON",
        "PRAGMA wal_checkpoint",
        "BEGIN",
        "VACUUM",
        "ANALYZE",
        "ATTACH '/tmp/x.db' AS x",
        "SELECT 1; DELETE FROM t",
        "SELECT load_extension('/tmp/x.so')",
    ],
)
def test_a_query_cannot_write(bench: Bench, sql: str) -> None:
    before = bench.path.read_bytes()
    with pytest.raises(ToolError):
        bench.query(sql)
    assert bench.path.read_bytes() == before
    assert [p.name for p in bench.path.parent.iterdir()] == ["app.db"]


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH '{file}' AS x",
        "ATTACH '' || '{file}' AS x",
        "DETACH main",
        "VACUUM INTO '{file}'",
        "PRAGMA journal_mode=OFF",
        "PRAGMA temp_store_directory='{folder}'",
        "PRAGMA writable_schema=ON",
        "SELECT load_extension('{file}')",
        "COMMIT",
        "INSERT INTO t (name) VALUES ('x'); COMMIT; BEGIN",
    ],
)
def test_sql_reaches_nothing_but_its_database(bench: Bench, tmp_path: Path, sql: str) -> None:
    place = tmp_path / "outside"
    place.mkdir()
    with pytest.raises(ToolError) as caught:
        bench.execute(sql.format(file=place / "x.db", folder=place))
    assert "not authorized" not in caught.value.message
    assert list(place.iterdir()) == []
    assert bench.query("SELECT count(*) FROM t").values["rows"] == [[2]]


def test_what_belongs_to_a_migration_is_allowed(bench: Bench) -> None:
    bench.execute("PRAGMA user_version=5; ALTER TABLE t ADD COLUMN mail TEXT; ANALYZE")
    bench.execute("DELETE FROM t WHERE id=1")
    bench.execute("VACUUM;")
    assert bench.query("PRAGMA user_version").values["rows"] == [[5]]
    assert len(bench.query("PRAGMA table_info(t)").values["rows"]) == 4
    assert bench.query("SELECT count(*) FROM pragma_table_info('t')").values["rows"] == [[4]]


@pytest.mark.parametrize("tool", ["sql.execute", "sql.query"])
def test_an_endless_statement_is_stopped(bench: Bench, tool: str) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT sum(i) FROM n"
    with pytest.raises(ToolTimeoutError, match="0.2 seconds"):
        bench.run(tool, endless, timeout=0.2)
    assert bench.execute("DELETE FROM t").values["rows_changed"] == 2


def test_a_locked_database_is_told_as_such(bench: Bench) -> None:
    with closing(sqlite3.connect(bench.path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ToolError, match="locked by another process"):
            bench.execute("DELETE FROM t", timeout=0.1)


def test_a_database_that_is_gone_or_became_a_link_is_not_made_anew(bench: Bench) -> None:
    target = bench.path.parent / "other.db"
    bench.path.rename(target)
    with pytest.raises(ToolError, match="no database") as caught:
        bench.execute("CREATE TABLE x (a)")
    assert "roll back" in caught.value.hint
    assert not bench.path.exists()
    bench.path.symlink_to(target)
    with pytest.raises(ToolError, match="no database"):
        bench.execute("DROP TABLE t")


def test_a_file_that_is_no_database_is_named(bench: Bench) -> None:
    bench.path.write_bytes(b"garbage" * 1000)
    with pytest.raises(ToolError, match="file is not a database"):
        bench.query("SELECT 1 FROM t")


def test_a_log_in_use_is_left_as_the_journal_mode_it_is(bench: Bench) -> None:
    with closing(sqlite3.connect(bench.path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
    bench.execute("INSERT INTO t (name) VALUES ('x')")
    assert bench.query("PRAGMA journal_mode").values["rows"] == [["wal"]]
    assert [p.name for p in bench.path.parent.iterdir()] == ["app.db"]


def test_each_tool_is_for_its_own_kind_of_resource(bench: Bench) -> None:
    assert bench.check("sql.execute", resource="db", sql="SELECT 1") == []
    assert bench.check("shell", resource="db", command="true") == []
    [problem] = bench.check("sql.query", resource="code", sql="SELECT 1")
    assert "`code` is of type git-checkout; there is db" in problem
    [problem] = bench.check("file.read", resource="db", path="app.db")
    assert "`db` is a database; use sql.query" in problem
    [problem] = bench.check("sql.query", resource="db", sql="SELECT 1", parameters="x")
    assert "must be a list or map" in problem


def test_a_shell_runs_in_the_folder_of_the_database(bench: Bench) -> None:
    spec = bench.tools.find(bench.action, "shell")
    arguments = {"resource": "db", "command": "pwd; ls; echo $CLEVERAGENTS_SANDBOX_DB"}
    for names in (["app.db"], []):
        done = bench.tools.run(spec, arguments, bench.context)
        assert done.output.split() == [str(bench.path.parent), *names, str(bench.path)]
        bench.path.unlink(missing_ok=True)
