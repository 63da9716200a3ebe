"""The connections to the metadata database, and the making of its tables at the first one."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager

from cleveragents.domain.errors import (
    DatabaseBusyError,
    DatabaseDamagedError,
    DatabaseTooNewError,
    DatabaseTooOldError,
    DatabaseUnusableError,
    DataDirError,
)
from cleveragents.domain.scarcity import scarcity_of
from cleveragents.infrastructure.database.rows import DamagedRowError
from cleveragents.infrastructure.database.schema import FORMAT, SCHEMA

BUSY_SECONDS = 30.0
_PAUSE_SECONDS = 0.05
# The database, its journals and its folder.
_FILES_OF_SQLITE = 4


class Database:
    """One SQLite file; a connection per thread, opened on first use, when the tables are made too.

    `make_ready` is called before that: the folder that all else is kept in.
    """

    def __init__(self, path: str, make_ready: Callable[[], None] = lambda: None) -> None:
        self.path = path
        self._make_ready = make_ready
        self._local = threading.local()
        self._ready = False
        self._preparing = threading.Lock()
        # Between the threads of one process a queue is fair; SQLite's own waiting is not.
        self.writer = threading.Lock()

    def connection(self) -> sqlite3.Connection:
        existing: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if existing is not None:
            return existing
        with self._preparing:
            if not self._ready:
                self._prepare()
                self._ready = True
        self._local.connection = connection = self._open()
        return connection

    def close(self) -> None:
        """The connection of this thread; it is opened again if there is another use."""
        existing: sqlite3.Connection | None = self._local.__dict__.pop("connection", None)
        if existing is not None:
            existing.close()

    def problems(self) -> Sequence[str]:
        """What SQLite finds wrong: pages and indexes, and rows that name others that are gone."""
        try:
            connection = self.connection()
            pages = [str(row[0]) for row in connection.execute("PRAGMA quick_check(10)")]
            rows = connection.execute("PRAGMA foreign_key_check").fetchmany(10)
        except sqlite3.DatabaseError as error:
            self._refuse_without_files(error)
            return [str(error)]
        except DatabaseUnusableError as error:
            return [error.message]
        orphans = [f"row {row[1]} of {row[0]} names one of {row[2]} that is gone" for row in rows]
        broken = [text for text in pages if text != "ok"] + orphans
        return broken or _unreadable(connection)

    @contextmanager
    def translated(self) -> Generator[None]:
        """Turn the library's errors into ours, at this edge only."""
        try:
            yield
        except DamagedRowError as error:
            raise DatabaseDamagedError(self.path, str(error)) from error
        except sqlite3.OperationalError as error:
            self._refuse_without_files(error)
            # Errors of the Python module itself, such as text that is not UTF-8, have no code.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (
                sqlite3.SQLITE_BUSY,
                sqlite3.SQLITE_LOCKED,
            ):
                raise DatabaseBusyError(self.path) from error
            raise DatabaseUnusableError(self.path, str(error)) from error
        except sqlite3.DatabaseError as error:
            raise DatabaseUnusableError(self.path, str(error)) from error

    def _refuse_without_files(self, error: sqlite3.DatabaseError) -> None:
        """SQLite does not say why it cannot open a file; the system does, if it is asked again."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CANTOPEN:
            return
        with ExitStack() as opened:
            try:
                for _ in range(_FILES_OF_SQLITE):
                    file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
                    opened.callback(os.close, file)
            except OSError as reason:
                if scarce := scarcity_of(reason):
                    raise scarce from error

    def _open(self) -> sqlite3.Connection:
        with self.translated():
            connection = sqlite3.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=True
            )
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        # First, for a file that is refused is left as it is.
        if not self._is_made(connection):
            self._make(connection)
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    def _prepare(self) -> None:
        self._make_ready()
        folder = os.path.dirname(self.path)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise DataDirError(folder, error.strerror or str(error)) from error
        if not os.access(folder, os.W_OK | os.X_OK) or (
            os.path.exists(self.path) and not os.access(self.path, os.W_OK)
        ):
            raise DataDirError(folder, "it is not writable")

    def _is_made(self, connection: sqlite3.Connection) -> bool:
        """False for a file with nothing in it; what another version wrote is refused."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > FORMAT:
            raise DatabaseTooNewError(self.path, str(version))
        if version == FORMAT:
            return True
        if connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
            raise DatabaseTooOldError(self.path)
        return False

    def _make(self, connection: sqlite3.Connection) -> None:
        """In one transaction: a kill leaves an empty file, and of two first commands at once the
        second one waits, and then finds the work done."""
        os.chmod(self.path, 0o600)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not self._is_made(connection):
                for statement in SCHEMA.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _unreadable(connection: sqlite3.Connection) -> list[str]:
    """Rows with a value that is not the JSON that it should be."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    found: list[str] = []
    for (table,) in tables:
        columns = connection.execute(f"PRAGMA table_info('{table}')").fetchall()
        key = next((row[1] for row in columns if row[5] == 1), "rowid")
        for column in (row[1] for row in columns if row[1].endswith("_json")):
            bad = connection.execute(
                f"SELECT {key} FROM {table}"
                f" WHERE {column} IS NOT NULL AND NOT json_valid({column}) LIMIT 10"
            )
            found += [f"{column} of {row[0]} in {table} is no JSON" for row in bad]
    return found


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait when another connection writes at the moment of this change."""
    for _ in range(int(BUSY_SECONDS / _PAUSE_SECONDS)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")
