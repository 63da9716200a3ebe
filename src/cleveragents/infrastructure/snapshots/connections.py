"""Owns the open connections to snapshot files: kept for the next use, one user at a time."""

import os
import sqlite3
import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenFile:
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

    def close(self, path: str | None = None) -> None:
        """Those of one file, or all. What is in use is not touched."""
        for name in [path] if path is not None else list(self._idle):
            while (idle := self._pop(name)) is not None:
                idle.db.close()

    def _pop(self, path: str) -> OpenFile | None:
        with self._lock:
            if self._pid != os.getpid():
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
