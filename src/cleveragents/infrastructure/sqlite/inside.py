"""The program that runs inside: asked over its input, it answers over its output until that ends.

It is started without site packages and imports next to nothing: a plan waits for it.
"""

import os
import resource
import sqlite3
import sys
import time
from collections.abc import Callable

from cleveragents.infrastructure.sqlite.inside_base import (
    RefusedError,
    opened,
    read_only,
    refusal,
)
from cleveragents.infrastructure.sqlite.inside_compare import check, compare
from cleveragents.infrastructure.sqlite.inside_statements import execute, query
from cleveragents.infrastructure.sqlite.messages import BUSY, HEAD, WRONG, Value, framed, read
from cleveragents.infrastructure.sqlite.side_files import LOG

# A database can ask for as much memory as it likes; SQLite says that there is none rather than
# take what others need.
_MOST_MEMORY = 1 << 30


class Desk:
    """Where requests come in; what it has to be told between two of them, it remembers."""

    def __init__(self) -> None:
        holding = Holding()
        self._tasks: dict[str, Callable[..., Value]] = {
            "hold": holding.hold,
            "read": holding.read,
            "release": holding.release,
            "execute": execute,
            "query": query,
            "compare": compare,
            "check": check,
        }

    def answer(self, request: Value) -> bytes:
        assert isinstance(request, list)
        task, *arguments = request
        try:
            return framed([True, self._tasks[str(task)](*arguments)])
        except RefusedError as error:
            return framed([False, error.kind, error.what, error.hint])
        except (OSError, MemoryError, OverflowError) as error:
            return framed([False, WRONG, str(error) or type(error).__name__, ""])


def main() -> None:  # pragma: no cover - in a process that no tool looks into
    asked = sys.stdin.buffer
    with open(os.dup(1), "wb") as told:
        os.dup2(2, 1)  # what anything prints is no answer
        _limit()
        desk = Desk()
        while head := asked.read(HEAD.size):
            told.write(desk.answer(read(asked.read(HEAD.unpack(head)[0]))))
            told.flush()
        os._exit(0)  # there is nothing to be put in order, and somebody waits for the end


def _limit() -> None:  # pragma: no cover - as above
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # its dump would lie in the sandbox
    db = sqlite3.connect(":memory:")
    db.execute(f"PRAGMA hard_heap_limit={_MOST_MEMORY}")
    db.close()


class Holding:
    """Folds a database's journals into it, and holds it still while others read its bytes; at most
    one at a time."""

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

    def read(self, path: str, seconds: float) -> None:
        """As any reader does: what is committed now can be read from the file and its log until
        `release`, while others go on writing. Raises RefusedError."""
        self.release()
        try:
            self._db = read_only(path, seconds)
            self._db.execute("BEGIN")
            self._db.execute("PRAGMA schema_version").fetchone()
        except sqlite3.Error as error:
            self.release()
            raise refusal(error) from error

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
