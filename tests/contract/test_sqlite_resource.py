"""A SQLite database as a resource: copied while in use, compared, and brought back by SQLite."""

import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cleveragents.domain.action import ResourceSpec, ResourceType
from cleveragents.domain.applying import ApplyOptions, PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import (
    ApplyConflictError,
    ApplyRefusedError,
    ResourceError,
    SandboxError,
    SandboxMissingError,
)
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox import sqlite_apply, sqlite_read
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.sandboxes import SandboxRegistry

PLAN = PlanId("01J00000000000000000000001")
JOURNALS = ["delete", "wal"]


class World:
    def __init__(self, top: Path) -> None:
        self.top = top
        self.folder = top / "my project"
        self.folder.mkdir()
        self.path = self.folder / "app ?#%.db"
        self.snapshots = CheckpointManager(str(top / "data/snapshots"), str(top / "data/scratch"))
        self.registry = SandboxRegistry(
            str(top / "data/sandboxes"),
            str(top / "data/scratch"),
            self.snapshots.folders,
            self.snapshots.databases,
        )

    def make(self, journal: str = "delete") -> None:
        self.sql(
            f"PRAGMA journal_mode={journal}",
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE)",
            "INSERT INTO users (name) VALUES ('ann'), ('bob'), ('cy')",
        )

    def sql(self, *statements: str, path: Path | None = None) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(path or self.path, isolation_level=None)) as db:
            return [row for statement in statements for row in db.execute(statement).fetchall()]

    def inspect(self, path: Path | None = None):
        spec = ResourceSpec(name="db", type=ResourceType.SQLITE, location=str(path or self.path))
        return self.registry.inspect(spec, PLAN, include_uncommitted=False)

    def planned(self) -> PlanResource:
        found = self.inspect()
        return PlanResource(
            resource_id=ResourceId("01J00000000000000000000003"),
            plan_id=PLAN,
            name="db",
            type=ResourceType.SQLITE,
            location=found.location,
            base=found.base,
            sandbox_path=self.registry.path_for(PLAN, "db", ResourceType.SQLITE, found.location),
            details=found.details,
        )

    def sandbox(self) -> PlanResource:
        resource = self.planned()
        self.registry.create(resource)
        return resource.ready(self.snapshots.capture(resource).ref)

    def prepare(self, resource: PlanResource) -> PreparedApply:
        return self.registry.prepare_apply(resource, ApplyOptions(message="work"))

    def apply(self, resource: PlanResource) -> str:
        return self.registry.carry_out(resource, self.prepare(resource))

    def users(self, path: Path | None = None) -> list[object]:
        return [name for (name,) in self.sql("SELECT name FROM users ORDER BY id", path=path)]

    def everything(self) -> dict[str, tuple[int, int, bytes]]:
        """The user's folder to the byte, with times."""
        found: dict[str, tuple[int, int, bytes]] = {}
        for path in self.folder.iterdir():
            status = path.stat()
            # An index of the log that every process makes for itself, and no content.
            index = path.name.endswith("-shm")
            time_ns = 0 if index else status.st_mtime_ns
            found[path.name] = (status.st_mode, time_ns, b"" if index else path.read_bytes())
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@contextmanager
def elsewhere(path: Path, *statements: str) -> Generator[None]:
    """Another process that has done these and keeps its connection open."""
    script = (
        "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for s in sys.argv[2:]: d.execute(s).fetchall()\n"
        "print('done', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(path), *statements]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"done\n"
        try:
            yield
        finally:
            other.kill()


def changed(diff: ResourceDiff) -> dict[str, tuple[str, int | None, int | None]]:
    return {f.path: (f.kind.value, f.insertions, f.deletions) for f in diff.files}


# --- inspect --------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal", JOURNALS)
def test_looking_at_a_database_leaves_no_trace(world: World, journal: str) -> None:
    world.make(journal)
    before = world.everything()
    found = world.inspect()
    assert found.location == str(world.path)
    assert found.details["journal_mode"] == journal
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


# --- apply ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal", JOURNALS)
def test_the_result_reaches_the_database_and_can_be_carried_out_again(
    world: World, journal: str
) -> None:
    world.make(journal)
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("DELETE FROM users WHERE id=2", "CREATE TABLE more (a)", path=path)
    before = world.everything()
    prepared = world.prepare(resource)
    assert world.everything() == before
    ref = world.registry.carry_out(resource, prepared)
    assert ref.startswith("sqlite:")
    assert world.users() == ["ann", "cy"]
    assert world.sql("PRAGMA journal_mode") == [(journal,)]
    assert [p.name for p in world.folder.iterdir()] == [world.path.name]
    after = world.everything()
    assert world.registry.carry_out(resource, prepared) == ref
    assert world.everything() == after
    world.registry.remove(resource)
    marked = replace(resource, details={**resource.details, "apply": dict(prepared.token)})
    assert world.registry.applied_diff(marked, ref) == prepared.diff


def test_nothing_changed_means_nothing_is_written(world: World) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=1")
    before = world.everything()
    world.apply(resource)
    assert world.everything() == before


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_database_that_moved_on_is_a_conflict(world: World, journal: str) -> None:
    world.make(journal)
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    world.sql("UPDATE users SET name='mine' WHERE id=3")
    with pytest.raises(ApplyConflictError) as caught:
        world.prepare(resource)
    assert caught.value.files == (str(world.path),)
    with pytest.raises(ApplyConflictError):
        world.registry.carry_out(resource, prepared)
    assert world.users() == ["ann", "bob", "mine"]


def test_a_write_between_the_last_look_and_the_writing_is_a_conflict(
    world: World, monkeypatch
) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    opened = sqlite_apply._target

    def write_first(path: str) -> sqlite3.Connection:
        world.sql("UPDATE users SET name='mine' WHERE id=3")
        return opened(path)

    monkeypatch.setattr(sqlite_apply, "_target", write_first)
    with pytest.raises(ApplyConflictError):
        world.registry.carry_out(resource, prepared)
    assert world.users() == ["ann", "bob", "mine"]
    assert world.sql("PRAGMA integrity_check") == [("ok",)]


def test_folding_the_log_or_another_journal_mode_is_no_conflict(world: World) -> None:
    world.make("wal")
    with elsewhere(world.path, "INSERT INTO users (name) VALUES ('dee')"):
        resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    world.sql("PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE")
    world.apply(resource)
    assert world.users() == ["ann", "cy", "dee"]
    assert world.sql("PRAGMA journal_mode") == [("delete",)]


def test_readers_with_the_database_open_see_the_old_state_and_then_the_new(world: World) -> None:
    world.make("wal")
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    with closing(sqlite3.connect(world.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        old = reader.execute("SELECT count(*) FROM users").fetchone()
        world.apply(resource)
        assert reader.execute("SELECT count(*) FROM users").fetchone() == old == (3,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM users").fetchone() == (2,)


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_locked_database_is_left_as_it_is(world: World, journal: str, monkeypatch) -> None:
    monkeypatch.setattr(sqlite_apply, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(sqlite_read, "BUSY_SECONDS", 0.2)
    world.make(journal)
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    with elsewhere(world.path, "BEGIN IMMEDIATE"), pytest.raises(ApplyRefusedError, match="locked"):
        world.registry.carry_out(resource, prepared)
    assert world.users() == ["ann", "bob", "cy"]
    world.registry.carry_out(resource, prepared)
    assert world.users() == ["ann", "cy"]


def test_only_a_healthy_database_is_applied(world: World) -> None:
    world.make()
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    path.write_bytes(b"garbage" * 1000)
    with pytest.raises(ApplyRefusedError, match="no healthy database"):
        world.prepare(resource)
    path.unlink()
    with pytest.raises(ApplyRefusedError, match="it is gone"):
        world.prepare(resource)
    assert world.users() == ["ann", "bob", "cy"]


def test_a_sandbox_changed_after_preparing_is_refused(world: World) -> None:
    world.make()
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("DELETE FROM users WHERE id=2", path=path)
    prepared = world.prepare(resource)
    world.sql("DELETE FROM users", path=path)
    with pytest.raises(ApplyRefusedError, match="after the apply was prepared"):
        world.registry.carry_out(resource, prepared)


def test_a_missing_original_is_refused(world: World) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    world.path.unlink()
    with pytest.raises(ApplyRefusedError, match="not there any more"):
        world.prepare(resource)


def test_other_page_sizes_and_shrinking_reach_the_database(world: World) -> None:
    world.make()
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 3000)"
    world.sql(f"{numbers} INSERT INTO users (name) SELECT hex(randomblob(50)) FROM n")
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("DELETE FROM users WHERE id>3", "PRAGMA page_size=1024", "VACUUM", path=path)
    world.apply(resource)
    assert world.users() == ["ann", "bob", "cy"]
    assert world.sql("PRAGMA page_size") == [(1024,)]
    assert world.path.stat().st_size == path.stat().st_size


def test_a_page_size_that_sqlite_cannot_change_is_refused_and_nothing_changes(world: World) -> None:
    world.make("wal")
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    statements = ("PRAGMA journal_mode=DELETE", "PRAGMA page_size=1024", "VACUUM")
    world.sql(*statements, path=path)
    before = world.users()
    with pytest.raises(ApplyRefusedError, match="was not changed"):
        world.apply(resource)
    assert world.users() == before
    assert world.sql("PRAGMA page_size") == [(4096,)]


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_result_of_a_single_page_reaches_the_database(world: World, journal: str) -> None:
    world.make(journal)
    resource = world.sandbox()
    world.sql("DROP TABLE users", "VACUUM", path=Path(resource.sandbox_path))
    world.apply(resource)
    assert world.sql("SELECT count(*) FROM sqlite_master") == [(0,)]
    assert world.path.stat().st_size == 4096


@pytest.mark.parametrize("journal", JOURNALS)
def test_an_apply_killed_anywhere_is_finished_by_the_next(world: World, journal: str) -> None:
    world.make(journal)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 20000)"
    world.sql(f"{numbers} INSERT INTO users (name) SELECT hex(randomblob(50)) FROM n")
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("UPDATE users SET name=hex(randomblob(60))", path=path)
    prepared = world.prepare(resource)
    for delay in (0.0, 0.01, 0.03, 0.06, 0.1):
        world.snapshots.close()
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                world.registry.carry_out(resource, prepared)
            os._exit(0)
        time.sleep(delay)
        os.kill(child, 9)
        os.waitpid(child, 0)
        assert world.sql("PRAGMA quick_check") == [("ok",)]
    world.registry.carry_out(resource, prepared)
    assert world.users() == world.users(path)
