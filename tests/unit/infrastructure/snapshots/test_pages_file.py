"""How a database file is held still: by a lock where it is all there is, or else by SQLite."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pages_world import Database, database

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.processes.process_tree import descendants
from cleveragents.infrastructure.snapshots.pages import database_file as pages_file
from cleveragents.infrastructure.snapshots.pages.database_file import (
    DatabaseFile,
    DatabaseMovedError,
)
from cleveragents.infrastructure.sqlite import worker

__all__ = ["database"]


@contextmanager
def elsewhere(path: Path, *statements: str) -> Generator[None]:
    """Another process that has done these and keeps its connection open; then it is killed."""
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


def processes() -> int:
    return len(descendants(os.getpid()))


def beside(database: Database) -> set[str]:
    return {path.name for path in database.path.parent.iterdir()}


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist", "wal"])
def test_a_quiet_database_is_captured_without_sqlite(database: Database, mode: str) -> None:
    database.sql(f"PRAGMA journal_mode={mode}", "UPDATE t SET a='x' WHERE id=1")
    before = processes()
    first = database.capture()
    database.sql(f"PRAGMA journal_mode={mode}", "UPDATE t SET a='y' WHERE id=1")
    assert database.capture().state_hash != first.state_hash
    assert processes() == before


def test_a_log_that_a_killed_process_left_is_folded_in(database: Database) -> None:
    database.sql("PRAGMA journal_mode=WAL")
    first = database.capture()
    with elsewhere(database.path, "UPDATE t SET a='from the log' WHERE id=1"):
        pass
    second = database.capture()
    assert second.state_hash != first.state_hash
    assert beside(database) == {"app.db"}
    assert b"from the log" in database.path.read_bytes()


def test_what_a_living_connection_has_in_its_log_is_captured(database: Database) -> None:
    database.sql("PRAGMA journal_mode=WAL")
    with elsewhere(database.path, "UPDATE t SET a='from the log' WHERE id=1"):
        database.capture()
        assert b"from the log" in database.path.read_bytes()
        assert "app.db-shm" in beside(database)


def test_a_connection_that_comes_with_a_log_meanwhile_is_noticed(database: Database) -> None:
    database.sql("PRAGMA journal_mode=WAL")
    file = DatabaseFile(database.resource, database.workers)
    with (
        pytest.raises(DatabaseMovedError),
        file.held(),
        closing(sqlite3.connect(database.path, isolation_level=None)) as db,
    ):
        db.execute("UPDATE t SET a='x' WHERE id=1")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_nobody_writes_to_what_is_held(database: Database) -> None:
    with (
        DatabaseFile(database.resource, database.workers).held() as held,
        closing(sqlite3.connect(database.path, timeout=0, isolation_level=None)) as db,
    ):
        before = os.pread(held.fd, 1 << 20, 0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            db.execute("UPDATE t SET a='x' WHERE id=1")
        assert os.pread(held.fd, 1 << 20, 0) == before


def test_a_crashed_transaction_is_rolled_back_before_the_capture(database: Database) -> None:
    first = database.capture()
    spill = ("PRAGMA cache_size=1", "PRAGMA cache_spill=1", "BEGIN IMMEDIATE")
    with elsewhere(database.path, *spill, "UPDATE t SET a=hex(randomblob(2000))"):
        pass
    assert Path(f"{database.path}-journal").stat().st_size
    assert database.capture().state_hash == first.state_hash
    assert beside(database) == {"app.db"}


def test_what_sqlite_dies_of_is_captured_as_it_is_and_said(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = database.capture()
    Path(f"{database.path}-wal").write_bytes(b"x" * 100)
    program = "import os; os.kill(os.getpid(), 11)"
    monkeypatch.setattr(worker, "_ARGV", (sys.executable, "-I", "-S", "-c", program))
    again = database.capture()
    assert again.state_hash == first.state_hash
    [note] = again.notes
    assert note.startswith("app.db was taken as it is, without its journals: SQLite died of it")
    monkeypatch.undo()
    assert database.capture().notes == ()


def test_sqlite_that_gives_no_answer_is_an_error(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_SECONDS", 0.2)
    monkeypatch.setattr(pages_file, "LOCK_SECONDS", 0.1)
    Path(f"{database.path}-wal").write_bytes(b"x" * 100)
    program = "import time; time.sleep(60)"
    monkeypatch.setattr(worker, "_ARGV", (sys.executable, "-I", "-S", "-c", program))
    with pytest.raises(SnapshotFailedError, match="SQLite gave no answer") as caught:
        database.capture()
    assert str(database.path.parent) in caught.value.hint
    monkeypatch.undo()
    database.capture()


def test_whoever_dies_while_it_holds_the_database_has_not_held_it(database: Database) -> None:
    database.sql("PRAGMA journal_mode=WAL")
    with elsewhere(database.path, "UPDATE t SET a='x' WHERE id=1"):
        before = set(descendants(os.getpid()))
        with (
            pytest.raises(DatabaseMovedError),
            DatabaseFile(database.resource, database.workers).held(),
        ):
            # The last of the new ones is the program; those above it keep it.
            os.kill(max(set(descendants(os.getpid())) - before), signal.SIGKILL)
            time.sleep(0.2)
        database.capture()


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_what_poses_as_a_journal_is_named_and_goes_with_a_restore(
    database: Database, suffix: str
) -> None:
    first = database.capture()
    database.sql("UPDATE t SET a='x' WHERE id=1")
    posing = Path(f"{database.path}{suffix}")
    posing.mkdir()
    (posing / "x").touch()
    second = database.capture()
    assert second.skipped == (posing.name,)
    assert second.state_hash != first.state_hash
    database.restore(first.ref)
    assert beside(database) == {"app.db"}


def test_a_database_that_its_owner_closed_is_captured_and_restored(database: Database) -> None:
    first, before = database.capture(), database.look()
    database.sql("UPDATE t SET a='x' WHERE id=1")
    database.path.chmod(0)
    second = database.capture()
    assert second.state_hash != first.state_hash
    assert database.store.compare(database.resource, second.ref) == ()
    database.restore(first.ref)
    assert database.look() == before
    database.restore(second.ref)
    assert database.path.stat().st_mode & 0o777 == 0
