"""What the process inside does with a request, here in this process."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.journals import journal_naming

from cleveragents.infrastructure.sqlite.inside import Desk
from cleveragents.infrastructure.sqlite.inside_base import address
from cleveragents.infrastructure.sqlite.messages import read

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT sum(i) FROM n"


class Bench:
    def __init__(self, top: Path) -> None:
        self.path = top / "app ?#%.db"
        self.old = top / "old.db"
        for path in (self.path, self.old):
            self.sql("CREATE TABLE t (a)", "INSERT INTO t VALUES (1), (2)", path=path)
        self.desk = Desk()

    def sql(self, *statements: str, path: Path | None = None) -> None:
        with closing(sqlite3.connect(path or self.path, isolation_level=None)) as db:
            for statement in statements:
                db.execute(statement)

    def __call__(self, task: str, *arguments: Any) -> Any:
        answer: Any = read(self.desk.answer([task, *arguments])[4:])
        return answer[1] if answer[0] else (answer[1], answer[2])

    def execute(self, sql: str, parameters: Any = (), seconds: float = 5.0) -> Any:
        return self("execute", str(self.path), sql, parameters, seconds)

    def query(self, sql: str, parameters: Any = (), limit: int = 10, seconds: float = 5.0) -> Any:
        return self("query", str(self.path), sql, parameters, limit, seconds)

    def compare(self) -> Any:
        return self("compare", str(self.old), str(self.path), "app.db")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_statements_are_carried_out_together_or_not_at_all(bench: Bench) -> None:
    done = bench.execute("INSERT INTO t VALUES (:a); SELECT a FROM t", {"a": 3})
    assert done == [["a"], [[1], [2], [3]], False, 1, []]
    kind, what = bench.execute("DELETE FROM t; INSERT INTO nowhere VALUES (1)")
    assert (kind, what) == ("wrong", "statement 2 of 2: no such table: nowhere")
    assert bench.query("SELECT count(*) FROM t")[1] == [[3]]
    assert bench.execute("VACUUM;") == [[], [], False, 0, []]


def test_what_is_given_back_is_bounded_and_plain(bench: Bench) -> None:
    assert bench.query("SELECT a FROM t", limit=1) == [["a"], [[1]], True, 0, []]
    shown = bench.query("SELECT x'00ff', 9e999, NULL, CAST(x'ff' AS TEXT)")[1]
    assert shown == [["x'00ff'", "inf", None, "\\xff"]]
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 9)"
    assert len(bench.query(f"{many} SELECT printf('%400000d', i) FROM n")[1]) == 3
    _, [[cut]], truncated, *_ = bench.query("SELECT hex(zeroblob(4000000))")
    assert truncated
    assert cut.startswith("0000")
    assert cut.endswith(f"[{8_000_000 - (1 << 20)} characters left out]")


@pytest.mark.parametrize(
    ("sql", "parameters", "kind", "what"),
    [
        ("SELECT 1; SELECT 2", (), "rule", "2 statements"),
        ("DELETE FROM t", (), "rule", "would write"),
        ("PRAGMA journal_mode=WAL", (), "rule", "PRAGMA journal_mode is not allowed"),
        ("SELECT load_extension('x')", (), "rule", "load_extension"),
        ("SELECT ?", ["\ud800"], "wrong", "surrogates"),
        ("SELCT", (), "wrong", "syntax error"),
        (ENDLESS, (), "time", "too long"),
    ],
)
def test_a_query_that_may_not_run_says_why(
    bench: Bench, sql: str, parameters: Any, kind: str, what: str
) -> None:
    found = bench.query(sql, parameters, seconds=0.2)
    assert found[0] == kind
    assert what in found[1]


@pytest.mark.parametrize(
    "sql",
    ["ATTACH 'x' AS y", "DETACH main", "COMMIT", "PRAGMA writable_schema=ON", "VACUUM INTO 'x'"],
)
def test_execute_reaches_nothing_but_its_database(bench: Bench, sql: str) -> None:
    assert bench.execute(sql)[0] == "rule"


def test_a_list_of_parameters_goes_with_one_statement(bench: Bench) -> None:
    assert bench.execute("SELECT ?; SELECT 2", [1])[0] == "rule"
    assert bench.execute("SELECT ?", [1])[1] == [[1]]


def test_others_that_keep_it_locked_are_told(bench: Bench) -> None:
    with closing(sqlite3.connect(bench.path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert bench.execute("DELETE FROM t", seconds=0.1)[0] == "busy"
        assert bench.query("SELECT a FROM t", seconds=0.1)[0] == "busy"
        assert bench("hold", str(bench.path), 0.1)[0] == "busy"


def test_holding_folds_the_log_whatever_the_schema_says(bench: Bench) -> None:
    log = Path(f"{bench.path}-wal")
    with closing(sqlite3.connect(bench.path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA writable_schema=ON")
        db.execute("UPDATE sqlite_master SET sql='nonsense('")
        assert log.stat().st_size
        assert bench("hold", str(bench.path), 5.0) == []
        assert not log.stat().st_size
        assert bench("release") is None
    assert b"nonsense(" in bench.path.read_bytes()


def test_a_log_that_others_read_is_waited_for_and_then_told(bench: Bench) -> None:
    bench.sql("PRAGMA journal_mode=WAL")
    with closing(sqlite3.connect(bench.path, isolation_level=None)) as db:
        db.execute("INSERT INTO t VALUES (3)")
        db.execute("BEGIN")
        db.execute("SELECT a FROM t").fetchall()
        assert bench("hold", str(bench.path), 0.1)[0] == "busy"


def test_holding_what_is_no_database_or_nothing_says_so(bench: Bench) -> None:
    bench.path.write_bytes(b"garbage" * 1000)
    assert bench("hold", str(bench.path), 0.1)[0] == "no database"
    bench.path.unlink()
    assert bench("hold", str(bench.path), 0.1)[0] == "wrong"
    bench.path.mkdir()
    assert bench("hold", str(bench.path), 0.1) == ("wrong", f"{bench.path.name} is no file")


def test_what_poses_as_a_journal_is_not_opened(bench: Bench) -> None:
    Path(f"{bench.path}-journal").symlink_to("/dev/null")
    for answer in (bench.query("SELECT 1"), bench.compare(), bench("hold", str(bench.path), 1.0)):
        assert answer[0] == "wrong"
        assert "none of SQLite's own files" in answer[1]


def test_a_journal_that_names_a_file_is_told_of(bench: Bench, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    Path(f"{bench.path}-journal").write_bytes(journal_naming(victim, bench.path))
    notes = bench("hold", str(bench.path), 5.0)
    assert notes == [f"{bench.path.name}-journal names {victim}, which was left alone"]
    assert victim.exists()


def test_a_difference_is_told_table_by_table(bench: Bench) -> None:
    assert bench.compare() == [[], "", []]
    bench.sql(
        "UPDATE t SET a='x' WHERE a=1",
        "CREATE TABLE more (k PRIMARY KEY, v) WITHOUT ROWID",
        "INSERT INTO more VALUES ('a', x'00')",
        "CREATE VIEW seen AS SELECT 1",
        "PRAGMA user_version=3",
        "CREATE VIRTUAL TABLE words USING fts5(text)",
    )
    parts, patch, notes = bench.compare()
    assert parts[:3] == [["", "modified", 1, 1], ["more", "added", 2, 0], ["seen", "added", 1, 0]]
    assert ["t", "modified", 1, 1] in parts
    assert notes == []
    for line in ("+ PRAGMA user_version=3", "+ ('a', <1 bytes>)", "- (1)", "+ ('x')"):
        assert line in patch.splitlines()
    bench.sql("DROP TABLE t")
    assert ["t", "deleted", 0, 3] in bench.compare()[0]


def test_a_key_that_is_another_one_makes_all_rows_others(bench: Bench) -> None:
    bench.sql("DROP TABLE t", "CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID")
    bench.sql("INSERT INTO t VALUES (1)")
    assert ["t", "modified", 2, 3] in bench.compare()[0]


def test_a_long_difference_is_cut(bench: Bench) -> None:
    columns = ", ".join(f"c{number}" for number in range(300))
    bench.sql(*(f"CREATE TABLE t{number} ({columns})" for number in range(200)))
    patch = bench.compare()[1]
    assert len(patch) < 300_000
    assert patch.endswith("The rest is not shown.\n")


def test_what_cannot_be_compared_says_why(bench: Bench) -> None:
    bench.sql("PRAGMA writable_schema=ON", "UPDATE sqlite_master SET sql='nonsense('")
    assert bench.compare()[0] == "no database"
    assert bench("check", str(bench.old)) == "ok"
    assert "malformed" in bench("check", str(bench.path))


def test_a_name_is_a_name_whatever_is_in_it() -> None:
    assert address("/a b/?mode=memory&x=%41#.db", "mode=rw") == (
        "file:/a%20b/%3fmode%3dmemory%26x%3d%2541%23.db?mode=rw"
    )
