"""Snapshots of database files: whatever is done to one, each snapshot comes back to the byte."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages_world import PLAN, Database, database

from cleveragents.domain.changes import ChangeKind
from cleveragents.domain.errors import SandboxMissingError, SnapshotDamagedError
from cleveragents.infrastructure.snapshots.pages import layout as pages_units

__all__ = ["database"]


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
        database.verify_restorable(snapshot)


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
