"""A plan's snapshot file: where it is, its tables, its transactions, and its errors.

What: one SQLite file for each plan and its children, with a write-ahead log that is synced at every
commit. A transaction that writes begins as such, so that two of them wait for each other instead of
failing in the middle; within one process they wait in line.
In which order: the file is made with modes for its owner only, then the tables, in one transaction
that looks again whether somebody else was faster. Room of deleted rows is given back by a call of
its own, after the commit that deleted them (`compact`).
What is not guaranteed: that a connection is good after an error. It is closed, never given back.
"""

import errno
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress

from cleveragents.domain.errors import (
    DatabaseBusyError,
    DatabaseTooNewError,
    SnapshotDamagedError,
    SnapshotFailedError,
    StoreFullError,
)
from cleveragents.infrastructure.snapshots.store.connections import Connections, OpenFile, file_at
from cleveragents.infrastructure.snapshots.store.disk_limits import (
    has_room,
    hint_for,
    keep_within,
    refused,
)

# 2: contents may be named by their blob. The tables are those of 1.
FORMAT = 2
# Of those that begin with `recent_` see `recent.py`.
_SCHEMA = """
CREATE TABLE contents (
    id INTEGER PRIMARY KEY, hash BLOB NOT NULL, size INTEGER NOT NULL, codec INTEGER NOT NULL,
    data BLOB
) STRICT;
CREATE TABLE git_contents (
    resource TEXT NOT NULL, hash BLOB NOT NULL, size INTEGER NOT NULL, oid TEXT NOT NULL,
    PRIMARY KEY (resource, hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE content_ids (
    hash BLOB PRIMARY KEY, id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE recent_content_ids (
    hash BLOB PRIMARY KEY, id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE file_chunks (
    hash BLOB NOT NULL, position INTEGER NOT NULL, chunk BLOB NOT NULL,
    PRIMARY KEY (hash, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_chunks_chunk ON file_chunks(chunk);
CREATE TABLE versions (
    tree INTEGER NOT NULL, seq INTEGER NOT NULL, path BLOB NOT NULL, kind INTEGER NOT NULL,
    mode INTEGER NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, hash BLOB NOT NULL,
    target BLOB NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL,
    PRIMARY KEY (tree, path, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX versions_seq ON versions(tree, seq);
CREATE TABLE snapshots (
    tree INTEGER NOT NULL, seq INTEGER NOT NULL, total BLOB NOT NULL, state_hash TEXT NOT NULL,
    identity TEXT NOT NULL, sandbox_ref TEXT NOT NULL, PRIMARY KEY (tree, seq)
) STRICT;
CREATE TABLE side_contents (
    tree INTEGER NOT NULL, seq INTEGER NOT NULL, name TEXT NOT NULL, hash BLOB NOT NULL,
    PRIMARY KEY (tree, seq, name),
    FOREIGN KEY (tree, seq) REFERENCES snapshots(tree, seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE TABLE boots (
    resource TEXT PRIMARY KEY, boot TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE trees (
    tree INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, generation INTEGER NOT NULL,
    fingerprint TEXT NOT NULL
) STRICT;
CREATE TABLE entries (
    tree INTEGER NOT NULL, path BLOB NOT NULL, kind INTEGER NOT NULL, mode INTEGER NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, hash BLOB NOT NULL, target BLOB NOT NULL,
    uid INTEGER NOT NULL, gid INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, ino INTEGER NOT NULL,
    dev INTEGER NOT NULL, PRIMARY KEY (tree, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE recent_paths (
    tree INTEGER NOT NULL, generation INTEGER NOT NULL, seq INTEGER NOT NULL, path BLOB NOT NULL,
    kind INTEGER NOT NULL, mode INTEGER NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    hash BLOB NOT NULL, target BLOB NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL, ino INTEGER NOT NULL, dev INTEGER NOT NULL,
    PRIMARY KEY (tree, path, generation)
) STRICT, WITHOUT ROWID;
CREATE TABLE listings (
    tree INTEGER PRIMARY KEY, exclude BLOB NOT NULL, spine BLOB NOT NULL, bytes INTEGER NOT NULL,
    touched INTEGER NOT NULL
) STRICT;
CREATE TABLE listing_parts (
    tree INTEGER NOT NULL, part INTEGER NOT NULL, tops BLOB NOT NULL, text BLOB NOT NULL,
    PRIMARY KEY (tree, part)
) STRICT;
CREATE TABLE stat_indexes (
    tree INTEGER PRIMARY KEY, border BLOB NOT NULL, folders BLOB NOT NULL, marks BLOB NOT NULL,
    first BLOB NOT NULL, second BLOB NOT NULL
) STRICT;
CREATE TABLE touched (
    tree INTEGER NOT NULL, generation INTEGER NOT NULL, paths BLOB NOT NULL,
    PRIMARY KEY (tree, generation)
) STRICT;
CREATE TABLE page_snapshots (
    tree TEXT NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, mode INTEGER NOT NULL,
    size INTEGER NOT NULL, target BLOB NOT NULL, total BLOB NOT NULL, state_hash TEXT NOT NULL,
    PRIMARY KEY (tree, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE page_versions (
    tree TEXT NOT NULL, page INTEGER NOT NULL, seq INTEGER NOT NULL, hash BLOB NOT NULL,
    PRIMARY KEY (tree, page, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX page_versions_seq ON page_versions(tree, seq);
CREATE TABLE page_bases (
    tree TEXT NOT NULL, block INTEGER NOT NULL, hashes BLOB NOT NULL, PRIMARY KEY (tree, block)
) STRICT;
CREATE TABLE page_files (
    tree TEXT PRIMARY KEY, seed BLOB NOT NULL, base_size INTEGER NOT NULL, fast BLOB NOT NULL,
    marks TEXT NOT NULL
) STRICT;
"""
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY_TIMEOUT = 30.0
_PACKS = ".packs"
_UNUSABLE = "the snapshot store cannot be used"
# What SQLite makes of an error of the system, by what usually is behind it.
_MEANS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}


def keep_so_far(db: sqlite3.Connection) -> None:
    """In the middle of a transaction: what was done until now is durable, whatever comes of it."""
    db.execute("COMMIT")
    db.execute("BEGIN IMMEDIATE")


def packs_folder(folder: str, plan_id: str) -> str:
    """Where links to packs are that contents of the plan are in; beside its file."""
    return os.path.join(folder, f"{plan_id}{_PACKS}")


class PlanStore:
    """Opens the file of one plan, which is made at the first use with modes only for its owner."""

    def __init__(
        self, folder: str, plan_id: str, resource: str, connections: Connections | None = None
    ) -> None:
        self._folder = folder
        self._plan_id = plan_id
        self._path = os.path.join(folder, f"{plan_id}.db")
        self._resource = resource
        # Without a place to keep it, a connection lasts for one transaction.
        self._connections = connections

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """One consistent view; nothing may be written."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """One durable transaction: kept if the block ends well, undone if it raises."""
        alone = self._connections.writer(self._path) if self._connections else nullcontext()
        with alone, self._transaction("BEGIN IMMEDIATE") as db:
            self._keep_within_limit(db)
            before = db.total_changes
            yield db
            written = db.total_changes - before
        if self._connections is not None:
            self._connections.written(self._path, written)

    def _keep_within_limit(self, db: sqlite3.Connection) -> None:
        """SQLite itself refuses to grow beyond this, before anything of the transaction is kept."""
        try:
            keep_within(db, self._path, self._connections.limit_bytes if self._connections else 0)
        except OSError as error:
            raise refused(_UNUSABLE, self._folder, error) from error

    def compact(self) -> None:
        """Give the room of deleted rows back to the file system."""
        with self._connection() as db:
            # As a script, because `execute` stops after the first page.
            db.executescript("PRAGMA incremental_vacuum")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def remove(self) -> None:
        if self._connections is not None:
            self._connections.close(self._path)
        # The file itself goes last: a journal without its file would be taken for a new one's.
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.unlink(self._path + suffix)
        packs = packs_folder(self._folder, self._plan_id)
        if os.path.isdir(packs):
            import shutil  # noqa: PLC0415 - slow to load, and hardly ever needed

            shutil.rmtree(packs, ignore_errors=True)

    @contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection]:
        with self._connection() as db:
            db.execute(begin)
            self._refuse_newer(db)
            try:
                yield db
            except BaseException:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        with self._translated():
            opened = self._opened()
            try:
                # Told before it is closed: that frees the journal, and with it a full disk.
                with self._translated():
                    yield opened.db
            except BaseException:
                # What failed in the middle is not worth a guess about the state it is in.
                opened.db.close()
                raise
            if self._connections is None:
                opened.db.close()
            else:
                self._connections.give_back(self._path, opened)

    def _opened(self) -> OpenFile:
        try:
            kept = self._connections.take(self._path) if self._connections else None
            return kept or self._connect()
        except OSError as error:
            raise refused(_UNUSABLE, self._path, error) from error

    def _connect(self) -> OpenFile:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        file = file_at(self._path)
        # Used by one thread at a time, though not always by the same one.
        db = sqlite3.connect(
            self._path, timeout=_BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        return OpenFile(db, file)

    def _refuse_newer(self, db: sqlite3.Connection) -> int:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version > FORMAT:
            raise DatabaseTooNewError(self._path, str(version))
        return version

    def _prepare(self, db: sqlite3.Connection) -> None:
        version = self._refuse_newer(db)
        if not version:
            # Only an empty file can take this setting.

            db.execute("PRAGMA auto_vacuum=INCREMENTAL")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA foreign_keys=ON")
        db.execute("PRAGMA journal_size_limit=67108864")
        # Usually done by `Connections`, which nobody has to wait for.
        db.execute("PRAGMA wal_autocheckpoint=8192")
        # Room for the pages of a large transaction, which would be written several times else.
        db.execute("PRAGMA cache_size=-65536")
        if not version:
            self._create(db)
        elif version < FORMAT:
            db.execute(f"PRAGMA user_version={FORMAT}")

    def _create(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("PRAGMA user_version").fetchone()[0]:
            for statement in _SCHEMA.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version={FORMAT}")
        db.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._translate(error) from error

    def _translate(self, error: sqlite3.Error) -> Exception:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _BUSY:
            return DatabaseBusyError(self._path)
        limit = self._connections.limit_bytes if self._connections else 0
        if code == sqlite3.SQLITE_FULL and limit and has_room(self._folder):
            return StoreFullError(limit)
        if code in _DAMAGED:
            return SnapshotDamagedError(self._resource, f"{self._path}: {error}")
        return SnapshotFailedError(
            f"{_UNUSABLE}: {self._path}: {error}", hint_for(_MEANS.get(code), self._path)
        )
