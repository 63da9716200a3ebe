"""Inside: folds a database's journals into it, and holds it still while others read its bytes."""

import os
import sqlite3
import time

from cleveragents.infrastructure.sqlite.inside_base import RefusedError, opened, refusal
from cleveragents.infrastructure.sqlite.messages import BUSY
from cleveragents.infrastructure.sqlite.side_files import LOG


class Holding:
    """At most one database at a time."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None

    def hold(self, path: str, seconds: float) -> list[str]:
        """Everything is in the file itself from now on, and writers are kept out. Raises
        RefusedError."""
        self.release()
        try:
            self._db, notes = opened(path, seconds)
            # A schema that cannot be read must not keep a log from being folded.
            self._db.execute("PRAGMA writable_schema=ON")
            _fold(self._db, path, seconds)
        except sqlite3.Error as error:
            self.release()
            raise refusal(error) from error
        except BaseException:
            self.release()
            raise
        return notes

    def release(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _fold(db: sqlite3.Connection, path: str, seconds: float) -> None:
    """With an empty write-ahead log the reader keeps others from folding a new one in."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        db.execute("BEGIN")
        db.execute("PRAGMA schema_version").fetchone()
        if not busy and not _size(path + LOG):
            return
        db.execute("COMMIT")
    raise RefusedError(BUSY, "others keep writing")


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0
