"""A machine that was started anew, and files that have lost their bytes over that.

A real power cut leaves size, times and number of a file as they were. No program can set the time
of the last change, so here the snapshot file is told the one that the damaged file has.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.agents import Agents


def restart(agents: Agents) -> None:
    """For what is stored of sandboxes, the machine has run for the first time since."""
    for store in _stores(agents):
        with closing(sqlite3.connect(store)) as db:
            db.execute("UPDATE boots SET boot='an earlier one'")
            db.commit()


def lose_bytes(agents: Agents, file: Path, path: str) -> None:
    """`path` of a sandbox is zeros now, and all that its status tells is known of it."""
    found = file.stat()
    file.write_bytes(b"\0" * found.st_size)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    ctime = file.stat().st_ctime_ns
    told = 0
    for store in _stores(agents):
        with closing(sqlite3.connect(store)) as db:
            for table in ("entries", "recent_paths"):
                change = f"UPDATE {table} SET ctime_ns=? WHERE path=? AND mtime_ns=?"
                told += db.execute(change, (ctime, path.encode(), found.st_mtime_ns)).rowcount
            db.commit()
    assert told, f"nothing is known of {path}"


def _stores(agents: Agents) -> list[Path]:
    return sorted((agents.data_dir / "snapshots").glob("*.db"))
