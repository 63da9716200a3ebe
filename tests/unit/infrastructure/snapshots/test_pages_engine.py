"""Snapshots of database files: whatever is done to one, each snapshot comes back to the byte."""

import multiprocessing
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleveragents.domain.action import ResourceType
from cleveragents.domain.changes import ChangeKind
from cleveragents.domain.errors import (
    RestoreFailedError,
    SandboxMissingError,
    SnapshotDamagedError,
    SnapshotFailedError,
    StoreFullError,
)
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.snapshots import pages_file, pages_units

PLAN = PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
FILE = ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAX")


class Database:
    """A sandbox with one database, and the store that takes snapshots of it."""

    def __init__(self, top: Path, rows: int = 2000) -> None:
        self.top = top
        self.path = top / "sandbox" / "app.db"
        self.path.parent.mkdir(parents=True)
        self.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
        filling = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT {rows})"
        self.sql(f"{filling} INSERT INTO t (a) SELECT hex(randomblob(150)) FROM n")
        self.resource = PlanResource(
            resource_id=FILE,
            plan_id=PLAN,
            name="db",
            type=ResourceType.SQLITE,
            location=str(self.path),
            base="",
            sandbox_path=str(self.path),
        )
        self.store = CheckpointManager(str(top / "snapshots"), str(top / "scratch"))

    def sql(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            for statement in statements:
                db.execute(statement)

    def capture(self):
        return self.store.capture(self.resource)

    def restore(self, ref: str):
        return self.store.restore(self.resource, ref)

    def verify(self, snapshot) -> None:
        self.store.verify(self.resource, snapshot.ref, snapshot.state_hash)

    def look(self) -> tuple[int, bytes] | str | None:
        if self.path.is_symlink():
            return str(self.path.readlink())
        if not self.path.exists():
            return None
        return stat.S_IMODE(self.path.stat().st_mode), self.path.read_bytes()

    @property
    def base(self) -> Path:
        return self.top / "snapshots" / f"{PLAN}.{FILE}.base"


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "d")


def test_a_changed_row_costs_a_few_pages_and_comes_back(database: Database) -> None:
    first, before = database.capture(), database.look()
    database.sql("UPDATE t SET a='new' WHERE id=700")
    second = database.capture()
    assert [(c.path, c.kind) for c in second.changes] == [("app.db", ChangeKind.MODIFIED)]
    assert 0 < second.size_bytes < 4 * pages_units.PAGE
    restored = database.restore(first.ref)
    assert database.look() == before
    assert restored.snapshot.state_hash == first.state_hash
    assert [c.path for c in restored.changes] == ["app.db"]


def test_an_unchanged_database_has_the_same_snapshot(database: Database) -> None:
    first = database.capture()
    time.sleep(0.02)  # past the clock tick in which it was written
    again = [database.capture() for _ in range(3)]
    assert {s.ref for s in again} == {first.ref}
    assert all(not s.changes and not s.size_bytes for s in again)


def test_a_write_in_the_same_clock_tick_is_seen(database: Database) -> None:
    hashes = {database.capture().state_hash}
    for number in range(20):
        found = database.path.stat()
        database.sql(f"UPDATE t SET a='{number:300}' WHERE id=5")
        os.utime(database.path, ns=(found.st_atime_ns, found.st_mtime_ns))
        hashes.add(database.capture().state_hash)
    assert len(hashes) == 21


def test_a_write_ahead_log_belongs_to_the_state(database: Database) -> None:
    first = database.capture()
    with closing(sqlite3.connect(database.path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("INSERT INTO t (a) VALUES ('in the log')")
        second = database.capture()
    before = database.look()
    database.restore(first.ref)
    database.restore(second.ref)
    assert database.look() == before
    assert sorted(p.name for p in database.path.parent.iterdir()) == ["app.db"]


def test_what_a_killed_writer_left_half_done_is_not_part_of_the_state(database: Database) -> None:
    first = database.capture()
    script = (
        "import os, sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "d.execute('PRAGMA cache_size=1'); d.execute('BEGIN');"
        "d.execute(\"UPDATE t SET a=a||'x'\"); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(database.path)], check=False)
    assert database.path.with_name("app.db-journal").exists()
    assert database.capture().state_hash == first.state_hash


def test_journals_of_other_content_are_gone_after_a_restore(database: Database) -> None:
    first, before = database.capture(), database.look()
    database.path.write_bytes(b"no database")
    for suffix in ("-wal", "-shm", "-journal"):
        database.path.with_name("app.db" + suffix).write_bytes(b"stale")
    database.restore(first.ref)
    assert database.look() == before
    assert [p.name for p in database.path.parent.iterdir()] == ["app.db"]
    database.sql("PRAGMA integrity_check")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def _hard_link(path: Path) -> None:
    os.link(path, path.parent.parent / "second-name")


def _folder(path: Path) -> None:
    path.unlink()
    (path / "in").mkdir(parents=True)


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        _empty,
        _link,
        _hard_link,
        _folder,
        lambda path: path.write_bytes(b"garbage " * 5000),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: path.write_bytes(path.read_bytes() + b"more"),
        lambda path: path.chmod(0o640),
    ],
    ids=["gone", "empty", "link", "hard link", "folder", "garbage", "cut", "longer", "mode"],
)
def test_whatever_a_tool_made_of_the_file_it_comes_back_and_so_does_that(
    database: Database, spoil
) -> None:
    first, before = database.capture(), database.look()
    spoil(database.path)
    spoilt, then = database.capture(), None if database.path.is_dir() else database.look()
    database.restore(first.ref)
    assert database.look() == before
    database.restore(spoilt.ref)
    assert database.look() == then
    database.restore(first.ref)
    assert database.look() == before
    for snapshot in (first, spoilt):
        database.verify(snapshot)


def test_a_restore_does_not_write_through_a_second_name(database: Database) -> None:
    first = database.capture()
    database.sql("DELETE FROM t")
    other = database.top / "second-name"
    os.link(database.path, other)
    mine = other.read_bytes()
    database.restore(first.ref)
    assert other.read_bytes() == mine


def test_files_beside_the_database_are_told_as_not_captured(database: Database) -> None:
    (database.path.parent / "notes.txt").write_text("x")
    assert database.capture().skipped == ("notes.txt",)


def test_a_missing_folder_is_a_missing_sandbox(database: Database) -> None:
    first = database.capture()
    database.path.unlink()
    database.path.parent.rmdir()
    with pytest.raises(SandboxMissingError):
        database.capture()
    with pytest.raises(SandboxMissingError):
        database.restore(first.ref)


@contextmanager
def locked_elsewhere(path: Path) -> Generator[None]:
    script = (
        "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "d.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        try:
            yield
        finally:
            other.kill()


def test_a_database_in_use_is_not_restored(database: Database, monkeypatch) -> None:
    monkeypatch.setattr(pages_file, "LOCK_SECONDS", 0.1)
    first = database.capture()
    database.sql("DELETE FROM t WHERE id=1")
    now = database.look()
    with locked_elsewhere(database.path):
        with pytest.raises(RestoreFailedError, match="in use"):
            database.restore(first.ref)
        with pytest.raises(SnapshotFailedError, match="in use"):
            database.capture()
    assert database.look() == now
    database.restore(first.ref)


def test_a_damaged_store_is_named_before_anything_changes(database: Database) -> None:
    first = database.capture()
    database.sql("UPDATE t SET a='x'")
    second = database.capture()
    now = database.look()
    data = bytearray(database.base.read_bytes())
    data[9000] ^= 1
    database.base.write_bytes(data)
    with pytest.raises(SnapshotDamagedError):
        database.verify(first)
    with pytest.raises(SnapshotDamagedError):
        database.restore(first.ref)
    assert database.look() == now
    database.base.unlink()
    with pytest.raises(SnapshotDamagedError):
        database.verify(first)
    database.restore(second.ref)
    assert database.look() == now


def test_a_flipped_byte_in_a_stored_page_is_found(database: Database) -> None:
    database.capture()
    database.sql("UPDATE t SET a='x' WHERE id=9")
    second = database.capture()
    database.store.close()
    with closing(sqlite3.connect(database.top / "snapshots" / f"{PLAN}.db")) as db:
        db.execute("UPDATE contents SET data=zeroblob(length(data))")
        db.commit()
    with pytest.raises(SnapshotDamagedError, match="app.db at byte"):
        database.verify(second)
    with pytest.raises(SnapshotDamagedError):
        database.restore("99")


def test_pruning_frees_pages_and_harms_no_kept_snapshot(database: Database) -> None:
    taken = [(database.capture(), database.look())]
    for number in range(6):
        database.sql(f"UPDATE t SET a=hex(randomblob(150)) WHERE id%{number + 2}=0")
        taken.append((database.capture(), database.look()))
    kept = [taken[0], taken[3]]
    assert database.store.keep_only(database.resource, [s.ref for s, _ in kept]) > 0
    for snapshot, bytes_then in [*kept, taken[6]]:
        database.verify(snapshot)
        database.restore(snapshot.ref)
        assert database.look() == bytes_then
    with pytest.raises(SnapshotDamagedError):
        database.restore(taken[1][0].ref)


def test_forgetting_a_plan_leaves_no_file(database: Database) -> None:
    database.capture()
    assert database.base.stat().st_mode & 0o077 == 0
    database.store.forget(PLAN)
    assert list((database.top / "snapshots").iterdir()) == []


def test_an_interrupted_first_snapshot_is_taken_again(database: Database) -> None:
    database.base.parent.mkdir()
    database.base.write_bytes(b"left behind")
    database.base.with_name(database.base.name + ".new").write_bytes(b"left behind too")
    first, before = database.capture(), database.look()
    database.sql("DELETE FROM t")
    database.restore(first.ref)
    assert database.look() == before


def test_a_database_beyond_the_limit_of_the_store_is_refused_before_it_is_stored(
    database: Database,
) -> None:
    limit = database.path.stat().st_size // 2
    place = database.top / "small"
    store = CheckpointManager(str(place), str(database.top / "scratch"), limit)
    with pytest.raises(StoreFullError):
        store.capture(database.resource)
    store.close()
    assert not list(place.glob("*.base*"))


def test_changes_between_snapshots_are_told_as_one_file(database: Database) -> None:
    one = database.capture()
    database.sql("DELETE FROM t WHERE id=1")
    two = database.capture()
    database.path.unlink()
    three = database.capture()

    def kinds(old, new):
        found = database.store.changes_between(database.resource, old.ref, new.ref)
        return [change.kind for change in found]

    assert kinds(one, two) == [ChangeKind.MODIFIED]
    assert kinds(two, three) == [ChangeKind.DELETED]
    assert kinds(three, two) == [ChangeKind.ADDED]
    assert kinds(two, two) == []


OPERATIONS = st.sampled_from(
    [
        "INSERT INTO t (a) SELECT hex(randomblob(100)) FROM t LIMIT 300",
        "DELETE FROM t WHERE id%3=0",
        "UPDATE t SET a='small' WHERE id%50=1",
        "VACUUM",
        "PRAGMA page_size=1024; VACUUM",
        "PRAGMA page_size=16384; VACUUM",
        "PRAGMA user_version=7",
        "PRAGMA journal_mode=WAL",
        "PRAGMA journal_mode=DELETE",
        "CREATE INDEX IF NOT EXISTS i ON t (a)",
        "DROP INDEX IF EXISTS i",
        "CREATE TABLE IF NOT EXISTS u (x BLOB); INSERT INTO u VALUES (randomblob(20000))",
    ]
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Database:
    database = Database(tmp_path_factory.mktemp("histories") / "d", rows=600)
    database.capture()
    return database


@settings(max_examples=25, deadline=None)
@given(
    history=st.lists(st.lists(OPERATIONS, min_size=1, max_size=3), min_size=1, max_size=5),
    picks=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    drift=st.booleans(),
)
def test_any_history_can_be_walked_in_any_order(shared, history, picks, drift) -> None:
    shared.restore("1")
    taken = [(shared.capture(), shared.look())]
    for operations in history:
        shared.sql(*(part for text in operations for part in text.split("; ")))
        taken.append((shared.capture(), shared.look()))
    for pick in picks:
        if drift:
            shared.sql("INSERT INTO t (a) VALUES ('never captured')")
        snapshot, then = taken[pick % len(taken)]
        assert shared.restore(snapshot.ref).snapshot.state_hash == snapshot.state_hash
        assert shared.look() == then
        shared.verify(snapshot)


def _restore(database: Database, ref: str) -> None:
    database.restore(ref)


def test_a_restore_killed_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    database = Database(tmp_path / "d", rows=8000)
    first, before = database.capture(), database.look()
    database.sql("UPDATE t SET a=hex(randomblob(150))", "INSERT INTO t (a) SELECT a FROM t")
    second, after = database.capture(), database.look()
    database.store.close()
    fork = multiprocessing.get_context("fork")
    started = time.monotonic()
    database.restore(first.ref)
    whole = time.monotonic() - started
    chance = random.Random(3)
    targets = [(second, after), (first, before)] * 5
    killed = 0
    for target, wanted in targets:
        child = fork.Process(target=_restore, args=(database, target.ref))
        child.start()
        time.sleep(chance.uniform(0.1, 1) * whole)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        killed += child.exitcode == -signal.SIGKILL
        database.restore(target.ref)
        assert database.look() == wanted
        assert database.capture().state_hash == target.state_hash
    assert killed
