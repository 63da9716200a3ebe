"""The open connections to snapshot files: kept for the next use, one user at a time."""

import os
import sqlite3
import threading
from contextlib import AbstractContextManager, closing, suppress

from msgspec import Struct

from cleveragents.infrastructure.snapshots.store.disk_limits import keep_within
from cleveragents.infrastructure.snapshots.store.recent_rows import pour_if_many

# About as many rows fill the thousand pages after which SQLite itself would write back.
_ROWS_TO_WRITE_BACK = 1000


class OpenFile(Struct, frozen=True):
    """A connection, and which file it is open on whatever its path may lead to by now."""

    db: sqlite3.Connection
    file: tuple[int, int] | None


class Connections:
    """Closing the last connection to a file writes its journal back, which costs as much as ten
    snapshots; so they stay open as long as the process needs the store.

    `limit_bytes` is what all files together may take; 0 for no limit.
    """

    def __init__(self, limit_bytes: int = 0) -> None:
        self.limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._idle: dict[str, list[OpenFile]] = {}
        self._inherited: list[dict[str, list[OpenFile]]] = []
        self._pid = os.getpid()
        self._writing_back: dict[str, threading.Thread] = {}
        self._rows: dict[str, int] = {}
        self._writers: dict[str, threading.RLock] = {}

    def writer(self, path: str) -> AbstractContextManager[object]:
        """Be the only thread that writes to the file: waiting here is fair, in SQLite it is not."""
        with self._lock:
            if not self._is_ours():
                self._writers = {}  # a thread that is not here any more may have held them
            return self._writers.setdefault(path, threading.RLock())

    def take(self, path: str) -> OpenFile | None:
        """One that is open on the file that is at `path` now."""
        file = file_at(path)
        while (idle := self._pop(path)) is not None:
            if idle.file == file:
                return idle
            idle.db.close()
        return None

    def give_back(self, path: str, opened: OpenFile) -> None:
        with self._lock:
            self._idle.setdefault(path, []).append(opened)

    def written(self, path: str, rows: int) -> None:
        """So many rows were committed. Writing the journal back is nothing to wait for."""
        with self._lock:
            self._rows[path] = self._rows.get(path, 0) + rows
            running = self._writing_back.get(path)
            if self._rows[path] < _ROWS_TO_WRITE_BACK or (running and running.is_alive()):
                return
            self._rows[path] = 0
            self._writing_back[path] = threading.Thread(target=self._write_back, args=(path,))
            self._writing_back[path].start()

    def close(self, path: str | None = None) -> None:
        """Those of one file, or all. What is in use is not touched."""
        for name in [path] if path is not None else list(self._idle):
            if (running := self._writing_back.pop(name, None)) is not None and self._is_ours():
                running.join()
            while (idle := self._pop(name)) is not None:
                idle.db.close()

    def _write_back(self, path: str) -> None:
        # Should it fail, then it is done later, and whoever waits for that is told. A file that
        # is gone by now must not be made anew.
        address = f"file:{path.replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=rw"
        with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(address, uri=True)) as db:
            with self.writer(path), db:
                db.execute("BEGIN IMMEDIATE")
                keep_within(db, path, self.limit_bytes)
                pour_if_many(db)
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _is_ours(self) -> bool:
        return self._pid == os.getpid()

    def _pop(self, path: str) -> OpenFile | None:
        with self._lock:
            if not self._is_ours():
                # SQLite forbids using, and even closing, a connection on the far side of a fork.
                self._inherited.append(self._idle)
                self._pid, self._idle = os.getpid(), {}
            waiting = self._idle.get(path)
            return waiting.pop() if waiting else None


def file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
