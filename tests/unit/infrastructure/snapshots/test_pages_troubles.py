"""Snapshots of database files in use, damaged, too large or killed: told, and nothing is lost."""

import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pages_world import PLAN, Database, database
from tests.support.runners import workbench

from cleveragents.domain.errors import (
    RestoreFailedError,
    SnapshotDamagedError,
    SnapshotFailedError,
    StoreFullError,
)
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters
from cleveragents.infrastructure.snapshots.pages import database_file as pages_file

__all__ = ["database"]


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
        database.verify_restorable(first)
    with pytest.raises(SnapshotDamagedError):
        database.restore(first.ref)
    assert database.look() == now
    # Nobody needs the damaged page to stay here.
    database.verify_restorable(second)
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


def test_pages_that_do_not_come_to_the_hash_are_no_way_back(database: Database) -> None:
    first = database.capture()
    database.sql("UPDATE t SET a='x' WHERE id=9")
    second = database.capture()
    database.verify_restorable(first)
    database.store.close()
    with closing(sqlite3.connect(database.top / "snapshots" / f"{PLAN}.db")) as db:
        db.execute("UPDATE page_snapshots SET total=zeroblob(32) WHERE seq=1")
        db.commit()
    with pytest.raises(SnapshotDamagedError, match="not the one that was recorded"):
        database.verify_restorable(first)
    database.verify_restorable(second)


def test_a_database_beyond_the_limit_of_the_store_is_refused_before_it_is_stored(
    database: Database,
) -> None:
    limit = database.path.stat().st_size // 2
    place = database.top / "small"
    bench = workbench(place, database.workers, limit)
    store = CheckpointManager(ResourceAdapters(bench))
    with pytest.raises(StoreFullError):
        store.capture(database.resource)
    store.close()
    assert not list((place / "snapshots").glob("*.base*"))


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
