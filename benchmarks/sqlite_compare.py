"""Prints what a snapshot of a database costs against copying its file, measured in one run.

    python benchmarks/sqlite_compare.py            1 MB, 100 MB and 1 GB
    python benchmarks/sqlite_compare.py 100        one size, in MB

One row is changed before each capture. Each figure is the median of several rounds; the copies and
the snapshots take turns, so that both meet the same machine.
"""

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

from cleveragents.domain.action import ResourceType
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

SIZES = (1, 100, 1024)
ROUNDS = 5
MEGABYTE = 1024 * 1024


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    print(f"{os.cpu_count()} cores, SQLite {sqlite3.sqlite_version}; one row changed, ms, median")
    print(
        f"{'size':>8} {'first':>9} {'copy':>9} {'capture':>9} {'ratio':>7} "
        f"{'unchanged':>9} {'copy back':>9} {'restore':>9} {'ratio':>7}"
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
        type=ResourceType.SQLITE,
        location=str(path),
        base="",
        sandbox_path=str(path),
    )
    store = CheckpointManager(str(top / "snapshots"), str(top / "scratch"))
    first = _timed(lambda: store.capture(resource))
    rounds = [_round(store, resource, path, top / "copy.db") for _ in range(ROUNDS)]
    columns = zip(*rounds, strict=True)
    copy, capture, unchanged, back, restore = (statistics.median(column) for column in columns)
    print(
        f"{megabytes:>5} MB {first:9.1f} {copy:9.1f} {capture:9.2f} {copy / capture:6.1f}x "
        f"{unchanged:9.2f} {back:9.1f} {restore:9.2f} {back / restore:6.1f}x",
        flush=True,
    )


def _round(
    store: CheckpointManager, resource: PlanResource, path: Path, copy: Path
) -> tuple[float, ...]:
    before = store.capture(resource)
    bytes_before = path.read_bytes() if path.stat().st_size < 2 * MEGABYTE else b""
    copying = _timed(lambda: shutil.copyfile(path, copy))
    _change_one_row(path)
    capture = _timed(lambda: store.capture(resource))
    unchanged = _timed(lambda: store.capture(resource))
    restore = _timed(lambda: store.restore(resource, before.ref))
    if bytes_before and path.read_bytes() != bytes_before:
        raise SystemExit("the restored file is not what it was")
    other = path.with_name("other.db")
    back = _timed(lambda: shutil.copyfile(copy, other))
    other.unlink()
    copy.unlink()
    return copying, capture, unchanged, back, restore


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
