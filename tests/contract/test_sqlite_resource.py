"""A SQLite database as a resource: copied while in use, and compared row by row."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlite_world import JOURNALS, PLAN, World, elsewhere, world

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import ResourceError, SandboxError, SandboxMissingError
from cleveragents.infrastructure.sandbox.sqlite import read as sqlite_read

__all__ = ["world"]


def changed(diff: ResourceDiff) -> dict[str, tuple[str, int | None, int | None]]:
    return {f.path: (f.kind.value, f.insertions, f.deletions) for f in diff.files}


# --- inspect --------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal", JOURNALS)
def test_looking_at_a_database_leaves_no_trace(world: World, journal: str) -> None:
    world.make(journal)
    before = world.everything()
    found = world.inspect()
    assert found.location == str(world.path)
    assert world.everything() == before
    assert world.inspect().base == found.base
    world.sql("DELETE FROM users")
    assert world.inspect().base != found.base


def test_an_empty_file_is_an_empty_database(world: World) -> None:
    world.path.write_bytes(b"")
    resource = world.sandbox()
    world.sql("CREATE TABLE t (a)", path=Path(resource.sandbox_path))
    assert world.path.read_bytes() == b""
    world.apply(resource)
    assert world.sql("SELECT name FROM sqlite_master") == [("t",)]


def test_what_is_no_database_is_refused(world: World) -> None:
    world.path.write_bytes(b"garbage " * 1000)
    with pytest.raises(ResourceError, match="not a SQLite database, or is encrypted"):
        world.inspect()
    with pytest.raises(ResourceError, match="is a folder") as caught:
        world.inspect(world.folder)
    assert "database file" in caught.value.hint
    with pytest.raises(ResourceError, match="no database at"):
        world.inspect(world.folder / "nothing.db")
    world.path.write_bytes(sqlite_read.MAGIC + b"\xff" * 5000)
    with pytest.raises(ResourceError, match="cannot be opened as a database"):
        world.inspect()
    assert [p.name for p in world.folder.iterdir()] == [world.path.name]


def test_the_programs_own_databases_are_refused(world: World) -> None:
    own = world.top / "data" / "cleveragents.db"
    own.parent.mkdir(exist_ok=True)
    own.touch()
    with pytest.raises(ResourceError, match="data directory"):
        world.inspect(own)


# --- create ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal", JOURNALS)
def test_the_sandbox_is_a_private_copy_with_the_same_name_and_journal_mode(
    world: World, journal: str
) -> None:
    world.make(journal)
    world.path.chmod(0o644)
    before = world.everything()
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    assert path == world.top / "data/sandboxes" / PLAN / "db" / world.path.name
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert world.users(path) == ["ann", "bob", "cy"]
    assert world.sql("PRAGMA journal_mode", path=path) == [(journal,)]
    assert world.everything() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_log_that_a_killed_process_left_is_copied_and_not_folded(world: World) -> None:
    world.make("wal")
    with elsewhere(world.path, "INSERT INTO users (name) VALUES ('dee')"):
        pass
    before = world.everything()
    assert set(before) == {world.path.name + suffix for suffix in ("", "-wal", "-shm")}
    resource = world.sandbox()
    assert world.users(Path(resource.sandbox_path))[-1] == "dee"
    assert world.everything() == before
    (world.folder / f"{world.path.name}-shm").unlink()
    before = world.everything()
    world.registry.create(resource)
    assert world.users(Path(resource.sandbox_path))[-1] == "dee"
    assert world.everything() == before


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_copy_made_while_others_write_is_consistent(world: World, journal: str) -> None:
    world.make(journal)
    world.sql("CREATE TABLE pair (a, b)", "INSERT INTO pair VALUES (0, 0)")
    resource = world.planned()
    script = (
        "import sqlite3, sys, time\n"
        "d = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)\n"
        "while True:\n"
        "    d.execute('BEGIN IMMEDIATE'); d.execute('UPDATE pair SET a=a+1')\n"
        "    d.execute('INSERT INTO users (name) VALUES (hex(randomblob(2000)))')\n"
        "    d.execute('UPDATE pair SET b=b+1'); d.execute('COMMIT'); print(flush=True)\n"
        "    time.sleep(0.01)"
    )
    path = Path(resource.sandbox_path)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(world.path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        for _ in range(5):
            writer.stdout.readline()
            world.registry.create(resource)
            assert world.sql("PRAGMA integrity_check", path=path) == [("ok",)]
            assert world.sql("SELECT a=b AND a>0 FROM pair", path=path) == [(1,)]
        writer.kill()
    assert world.sql("PRAGMA integrity_check") == [("ok",)]


def test_a_locked_database_is_told_after_a_while(world: World, monkeypatch) -> None:
    monkeypatch.setattr(sqlite_read, "BUSY_SECONDS", 0.2)
    world.make()
    resource = world.planned()
    with (
        elsewhere(world.path, "BEGIN EXCLUSIVE"),
        pytest.raises(SandboxError, match="locked by another process"),
    ):
        world.registry.create(resource)
    assert not Path(resource.sandbox_path).parent.exists()


def test_an_interrupted_creation_is_repeated_and_a_removal_is_complete(world: World) -> None:
    world.make()
    resource = world.planned()
    path = Path(resource.sandbox_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half")
    path.with_name(path.name + "-journal").write_bytes(b"stale")
    with pytest.raises(SandboxMissingError):
        world.registry.check(replace(resource, sandbox_path=str(world.top / "else" / "app.db")))
    world.registry.create(resource)
    assert world.users(path) == ["ann", "bob", "cy"]
    path.unlink()
    world.registry.check(resource)
    world.registry.release(resource)
    world.registry.remove(resource)
    world.registry.remove(resource)
    assert list((world.top / "data/sandboxes").iterdir()) == []
    with pytest.raises(SandboxMissingError):
        world.registry.check(resource)


def test_a_database_that_went_away_is_named(world: World) -> None:
    world.make()
    resource = world.planned()
    world.path.unlink()
    with pytest.raises(SandboxError, match="app"):
        world.registry.create(resource)


# --- diff -----------------------------------------------------------------------------------------


def test_a_diff_tells_rows_and_schema_table_by_table(world: World) -> None:
    world.make()
    world.sql(
        "CREATE TABLE keyed (k TEXT, n INT, v, PRIMARY KEY (k, n)) WITHOUT ROWID",
        "INSERT INTO keyed VALUES ('a', 1, 'x'), ('b', 2, 'y')",
        "CREATE TABLE old (a)",
        "INSERT INTO old VALUES (1), (2)",
        "CREATE TABLE same (a)",
    )
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    name = path.name
    assert world.registry.diff(resource) == ResourceDiff()
    world.sql(
        "UPDATE users SET name='ANN' WHERE id=1",
        "DELETE FROM users WHERE id=2",
        "INSERT INTO users (name) VALUES ('dee'), (x'00ff')",
        "UPDATE keyed SET v=1.0 WHERE k='a'",
        "ALTER TABLE keyed ADD COLUMN w",
        "DROP TABLE old",
        "CREATE TABLE fresh (a)",
        "CREATE INDEX by_name ON users (name)",
        "CREATE VIEW seen AS SELECT 1",
        "PRAGMA user_version=4",
        path=path,
    )
    diff = world.registry.diff(resource)
    assert changed(diff) == {
        name: ("modified", 1, 1),
        f"{name}/fresh": ("added", 1, 0),
        f"{name}/keyed": ("modified", 2, 2),
        f"{name}/old": ("deleted", 0, 3),
        f"{name}/seen": ("added", 1, 0),
        f"{name}/users": ("modified", 4, 2),
    }
    lines = diff.patch.splitlines()
    assert f"table {name}/users: rows 2 added, 1 removed, 1 changed" in lines
    for line in ("- (1, 'ann')", "+ (1, 'ANN')", "- (2, 'bob')", "+ (4, 'dee')", "+ (5, <2 bytes>)",
                 "+ CREATE INDEX by_name ON users (name)", "- CREATE TABLE old (a)",
                 "- PRAGMA user_version=0", "+ PRAGMA user_version=4"):  # fmt: skip
        assert line in lines, line
    assert not diff.left_behind


def test_a_diff_tells_what_columns_that_came_or_went_say(world: World) -> None:
    world.make()
    world.sql("CREATE TABLE notes (text, old)", "INSERT INTO notes VALUES ('a', 1), ('b', NULL)")
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql(
        "ALTER TABLE users ADD COLUMN due",
        "UPDATE users SET due='now' WHERE id=1",
        "ALTER TABLE notes DROP COLUMN old",
        path=path,
    )
    lines = world.registry.diff(resource).patch.splitlines()

    for table in ("users", "notes"):
        assert f"table {path.name}/{table}: rows 0 added, 0 removed, 1 changed" in lines
    for line in ("- (1, 'ann')", "+ (1, 'ann', 'now')", "- ('a', 1)", "+ ('a')"):
        assert line in lines, line


def test_a_diff_of_many_rows_stays_short_and_counts_them_all(world: World) -> None:
    world.make()
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 5000)"
    world.sql(f"{numbers} INSERT INTO users (name) SELECT hex(zeroblob(500)) FROM n", path=path)
    diff = world.registry.diff(resource)
    assert changed(diff) == {f"{path.name}/users": ("modified", 5000, 0)}
    assert len(diff.patch) < 5000
    assert "and 4980 more lines" in diff.patch


def test_a_diff_tells_what_no_table_shows(world: World) -> None:
    world.make()
    world.sql("DELETE FROM users WHERE id=2", "CREATE TABLE pad (a)", "DROP TABLE pad")
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("VACUUM", path=path)
    assert changed(world.registry.diff(resource)) == {path.name: ("modified", None, None)}
    path.write_bytes(b"garbage" * 1000)
    assert "cannot be compared" in world.registry.diff(resource).patch
    path.unlink()
    assert changed(world.registry.diff(resource)) == {path.name: ("deleted", None, None)}
    (path.parent / "notes.txt").write_text("x")
    assert world.registry.diff(resource).left_behind == ("notes.txt",)


def test_a_creation_that_was_repeated_is_compared_with_the_last_one(world: World) -> None:
    world.make()
    first = world.sandbox()
    world.sql("DELETE FROM users WHERE id=1")
    second = world.sandbox()
    assert first.base_snapshot != second.base_snapshot
    assert world.registry.diff(second) == ResourceDiff()
    world.sql("DELETE FROM users WHERE id=3", path=Path(second.sandbox_path))
    world.apply(second)
    assert world.users() == ["bob"]
