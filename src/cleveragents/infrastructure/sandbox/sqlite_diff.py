"""Owns the difference between two databases as people see it: schema and rows, table by table.

SQLite compares the tables itself; only as many rows as are shown come into memory.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from cleveragents.domain.changes import ChangeKind, FileDiff, ResourceDiff
from cleveragents.infrastructure.sandbox.sqlite_bytes import same_content
from cleveragents.infrastructure.sandbox.sqlite_read import address
from cleveragents.infrastructure.sandbox.sqlite_rows import RowChanges, changed_rows
from cleveragents.infrastructure.snapshots.entry import shown

_PATCH_CHARS = 256 * 1024
_SETTINGS = ("user_version", "application_id", "auto_vacuum", "page_size", "encoding")
_READ = os.O_RDONLY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    file: FileDiff
    lines: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Schema:
    """What belongs to one table or view: its own statement, and those of indexes and triggers."""

    kind: str
    statements: tuple[str, ...]

    @property
    def has_rows(self) -> bool:
        virtual = any(s.lstrip().upper().startswith("CREATE VIRTUAL") for s in self.statements)
        return self.kind == "table" and not virtual


def diff_of_databases(old: str, new: str, left_behind: Sequence[str] = ()) -> ResourceDiff:
    """From the file `old`, which nobody changes, to `new`, which may be anything or missing."""
    name = shown(os.fsencode(os.path.basename(new)))
    if not os.path.isfile(new) or os.path.islink(new):
        note = f"database {name}: it is gone\n"
        return _whole(name, ChangeKind.DELETED, note, left_behind)
    try:
        with closing(_both(old, new)) as db:
            parts = [*_settings(db, name), *_tables(db, name)]
    except sqlite3.DatabaseError as error:
        note = f"database {name}: it cannot be compared: {error}\n"
        return _whole(name, ChangeKind.MODIFIED, note, left_behind)
    if not parts and not _same_bytes(old, new):
        note = f"database {name}: the rows are the same, in another place in the file\n"
        return _whole(name, ChangeKind.MODIFIED, note, left_behind)
    lines = [line for part in parts for line in part.lines]
    return ResourceDiff(
        files=tuple(part.file for part in parts),
        patch=_bounded(lines),
        left_behind=tuple(left_behind),
    )


def _both(old: str, new: str) -> sqlite3.Connection:
    db = sqlite3.connect("file::memory:", uri=True, isolation_level=None)
    # Bytes that are no text must not keep the rest from being shown.
    db.text_factory = _text
    try:
        db.execute("ATTACH ? AS old", (address(old, "immutable=1"),))
        db.execute("ATTACH ? AS new", (address(new, "mode=rw"),))
        db.execute("PRAGMA query_only=ON")
        db.execute("BEGIN")
    except BaseException:
        db.close()
        raise
    return db


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _settings(db: sqlite3.Connection, name: str) -> Iterator[_Part]:
    lines: list[str] = []
    for setting in _SETTINGS:
        was, is_ = (db.execute(f"PRAGMA {s}.{setting}").fetchone()[0] for s in ("old", "new"))
        if was != is_:
            lines += [f"- PRAGMA {setting}={was}\n", f"+ PRAGMA {setting}={is_}\n"]
    if lines:
        count = len(lines) // 2
        file = FileDiff(path=name, kind=ChangeKind.MODIFIED, insertions=count, deletions=count)
        yield _Part(file=file, lines=[f"database {name}\n", *lines])


def _tables(db: sqlite3.Connection, name: str) -> Iterator[_Part]:
    old, new = _schemas(db, "old"), _schemas(db, "new")
    for table in sorted(old.keys() | new.keys()):
        part = _table(db, name, table, (old.get(table), new.get(table)))
        if part is not None:
            yield part


def _schemas(db: sqlite3.Connection, side: str) -> dict[str, _Schema]:
    rows = db.execute(
        f"SELECT tbl_name, type, sql FROM {side}.sqlite_master"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name"
    )
    found: dict[str, _Schema] = {}
    for table, kind, sql in rows:
        known = found.get(table, _Schema(kind="", statements=()))
        kind = kind if kind in ("table", "view") else known.kind
        found[table] = _Schema(kind=kind, statements=(*known.statements, sql))
    return found


def _table(
    db: sqlite3.Connection, name: str, table: str, schemas: tuple[_Schema | None, _Schema | None]
) -> _Part | None:
    old, new = schemas
    was = old.statements if old else ()
    is_ = new.statements if new else ()
    removed = [sql for sql in was if sql not in is_]
    added = [sql for sql in is_ if sql not in was]
    rows = changed_rows(db, table, old=_rows_of(old), new=_rows_of(new))
    if not (removed or added or rows.any):
        return None
    kind = ChangeKind.MODIFIED
    if old is None or new is None:
        kind = ChangeKind.ADDED if old is None else ChangeKind.DELETED
    file = FileDiff(
        path=f"{name}/{table}",
        kind=kind,
        insertions=len(added) + rows.added + rows.changed,
        deletions=len(removed) + rows.removed + rows.changed,
    )
    what = (new or old or _Schema(kind="table", statements=())).kind
    lines = [
        f"{what} {name}/{table}: {_in_words(rows)}\n",
        *(f"- {line}\n" for sql in removed for line in sql.splitlines()),
        *(f"+ {line}\n" for sql in added for line in sql.splitlines()),
        *(f"{line}\n" for line in rows.lines),
    ]
    return _Part(file=file, lines=lines)


def _rows_of(schema: _Schema | None) -> bool:
    return schema is not None and schema.has_rows


def _in_words(rows: RowChanges) -> str:
    return f"rows {rows.added} added, {rows.removed} removed, {rows.changed} changed"


def _whole(name: str, kind: ChangeKind, note: str, left_behind: Sequence[str]) -> ResourceDiff:
    file = FileDiff(path=name, kind=kind, insertions=None, deletions=None)
    return ResourceDiff(files=(file,), patch=note, left_behind=tuple(left_behind))


def _same_bytes(old: str, new: str) -> bool:
    one, two = os.open(old, _READ), os.open(new, _READ)
    try:
        return same_content(one, two)
    finally:
        os.close(one)
        os.close(two)


def _bounded(lines: Sequence[str]) -> str:
    kept: list[str] = []
    room = _PATCH_CHARS
    for line in lines:
        room -= len(line)
        if room < 0:
            kept.append("The rest is not shown.\n")
            break
        kept.append(line)
    return "".join(kept)
