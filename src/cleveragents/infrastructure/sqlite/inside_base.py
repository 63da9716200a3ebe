"""Inside: how a database is opened, and how it is said that something cannot be done."""

import os
import sqlite3
import stat

from cleveragents.infrastructure.sqlite.messages import BUSY, NO_DATABASE, WRONG
from cleveragents.infrastructure.sqlite.side_files import disown, posing

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NO_DATABASE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")


class RefusedError(Exception):
    """`kind` is one of the words that messages has for it; `what` and `hint` are for people."""

    def __init__(self, kind: str, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.kind = kind
        self.what = what
        self.hint = hint


def refusal(error: Exception) -> RefusedError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    kind = BUSY if code in _BUSY else NO_DATABASE if code in _NO_DATABASE else WRONG
    return RefusedError(kind, str(error))


def address(path: str, options: str) -> str:
    """By name alone: no character of it may become an option."""
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in os.fsencode(path))
    return f"file:{name}?{options}"


def opened(path: str, seconds: float) -> tuple[sqlite3.Connection, list[str]]:
    """A database that a step could have written, with what has to be told about its journal."""
    notes = made_ready(path)
    db = sqlite3.connect(address(path, "mode=rw"), uri=True, timeout=seconds, isolation_level=None)
    db.text_factory = text
    return db, notes


def read_only(path: str, seconds: float) -> sqlite3.Connection:
    """A database of the user's own, in which nothing is changed and beside which nothing is."""
    _refuse_posing(path)
    return sqlite3.connect(
        address(path, "mode=ro"), uri=True, timeout=seconds, isolation_level=None
    )


def made_ready(path: str) -> list[str]:
    """What SQLite would follow out of the folder is taken away, or nothing is opened."""
    _refuse_posing(path)
    owner = disown(path)
    name = os.path.basename(path)
    return [f"{name}-journal names {owner}, which was left alone"] if owner else []


def _refuse_posing(path: str) -> None:
    name = os.path.basename(path)
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise RefusedError(WRONG, f"{name} is no file")
    for suffix in posing(path):
        raise RefusedError(
            WRONG,
            f"{name}{suffix} beside it is none of SQLite's own files",
            f"remove {name}{suffix}, or roll back",
        )


def text(data: bytes) -> str:
    """Bytes that are no text must not keep the rest from being shown."""
    return data.decode("utf-8", "backslashreplace")
