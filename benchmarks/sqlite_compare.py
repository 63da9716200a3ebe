"""Prints what a snapshot of a database costs against copying its file, measured in one run.

    python benchmarks/sqlite_compare.py            1 MB, 100 MB and 1 GB
    python benchmarks/sqlite_compare.py 100        one size, in MB

One row is changed before each capture. Captures and restores are on disk when they return; `copy`
is shutil.copyfile, which leaves the bytes in memory, and `synced` the same with an fsync. Each
figure is the median of several rounds in which all take turns, each on a disk that is at rest; a
round before them counts for nothing, for memory used for the first time makes the copies slow.
"""

import hashlib
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from workers import adapters_in

from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

SIZES = (1, 100, 1024)
ROUNDS = 7
MEGABYTE = 1024 * 1024


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, SQLite {sqlite3.sqlite_version}")
    print("one row changed; ms, median")
    print(
        f"{'size':>8} {'first':>8} {'copy':>8} {'synced':>8} {'unchanged':>9} "
        f"{'capture':>8} {'x copy':>7} {'x synced':>8} {'restore':>8} {'x copy':>7} {'x synced':>8}"
    )
    for size in sizes:
        with tempfile.TemporaryDirectory() as top:
            _measure(Path(top), size)


def _measure(top: Path, megabytes: int) -> None:
    path = top / "sandbox" / "app.db"
    path.parent.mkdir()
    _fill(path, megabytes * MEGABYTE)
    resource = PlanResource(
        resource_id=ResourceId("01J00000000000000000000003"),
        plan_id=PlanId("01J00000000000000000000001"),
        name="db",
        type=SQLITE.type,
        location=str(path),
        base="",
        sandbox_path=str(path),
    )
    store = CheckpointManager(adapters_in(top))
    first = _timed(lambda: store.capture(resource))
    _round(store, resource, path, top / "copy.db")
    rounds = [_round(store, resource, path, top / "copy.db") for _ in range(ROUNDS)]
    columns = zip(*rounds, strict=True)
    copy, synced, capture, unchanged, restore = (statistics.median(column) for column in columns)
    store.close()
    print(
        f"{megabytes:>5} MB {first:8.1f} {copy:8.1f} {synced:8.1f} {unchanged:9.2f} "
        f"{capture:8.2f} {copy / capture:7.1f} {synced / capture:8.1f} "
        f"{restore:8.2f} {copy / restore:7.1f} {synced / restore:8.1f}",
        flush=True,
    )


def _round(
    store: CheckpointManager, resource: PlanResource, path: Path, copy: Path
) -> tuple[float, ...]:
    before = store.capture(resource)
    bytes_before = _digest(path)
    copying = _timed(lambda: shutil.copyfile(path, copy))
    copy.unlink()
    synced = _timed(lambda: _copy_synced(path, copy))
    copy.unlink()
    _change_one_row(path)
    capture = _timed(lambda: store.capture(resource))
    unchanged = _timed(lambda: store.capture(resource))
    restore = _timed(lambda: store.restore(resource, before.ref))
    if _digest(path) != bytes_before:
        raise SystemExit("the restored file is not what it was")
    return copying, synced, capture, unchanged, restore


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _copy_synced(path: Path, copy: Path) -> None:
    shutil.copyfile(path, copy)
    with copy.open("rb") as file:
        os.fsync(file.fileno())


def _timed(task: Callable[[], object]) -> float:
    os.sync()  # nobody pays for what was written before
    started = time.perf_counter()
    task()
    return (time.perf_counter() - started) * 1000


def _fill(path: Path, size: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, data BLOB)")
        while path.stat().st_size < size:
            rows = ((f"row {number}", os.urandom(900)) for number in range(1000))
            db.executemany("INSERT INTO t (name, data) VALUES (?, ?)", rows)
            db.commit()


def _change_one_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        count = db.execute("SELECT max(id) FROM t").fetchone()[0]
        data = os.urandom(900)
        db.execute("UPDATE t SET data=? WHERE id=?", (data, count // 2))
        db.commit()


if __name__ == "__main__":
    main()
