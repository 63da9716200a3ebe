"""Inside: the difference between two databases as people see it: schema and rows, table by table.

SQLite compares the tables itself; only as many rows as are shown come into memory.
"""

import sqlite3
from collections.abc import Iterator, Sequence

from cleveragents.infrastructure.sqlite.inside_base import address, made_ready, refusal, text
from cleveragents.infrastructure.sqlite.inside_rows import RowChanges, changed_rows
from cleveragents.infrastructure.sqlite.messages import Value

_PATCH_CHARS = 256 * 1024
_SETTINGS = ("user_version", "application_id", "auto_vacuum", "page_size", "encoding")
_WAIT_SECONDS = 30.0


class _TablePart:
    """What differs in one table or view; in the database itself if it has no name."""

    def __init__(self, table: str, kind: str, counts: tuple[int, int], lines: list[str]) -> None:
        self.table = table
        self.kind = kind
        self.counts = counts
        self.lines = lines

    def told(self) -> list[Value]:
        return [self.table, self.kind, *self.counts]


class _Schema:
    """What belongs to one table or view: its own statement, and those of indexes and triggers."""

    def __init__(self) -> None:
        self.kind = ""
        self.statements: list[str] = []

    @property
    def has_rows(self) -> bool:
        virtual = any(s.lstrip().upper().startswith("CREATE VIRTUAL") for s in self.statements)
        return self.kind == "table" and not virtual


def compare(old: str, new: str, name: str) -> list[Value]:
    """From the file `old`, which nobody changes, to `new`, which may be anything; `name` is what
    people call it. Raises RefusedError."""
    notes = made_ready(new)
    try:
        db = _both(old, new)
        try:
            parts = [*_settings(db, name), *_tables(db, name)]
        finally:
            db.close()
    except sqlite3.Error as error:
        raise refusal(error) from error
    lines = [line for part in parts for line in part.lines]
    return [[part.told() for part in parts], _bounded(lines), notes]


def check(path: str) -> str:
    """What is wrong with the file, which nobody changes; `ok` if nothing is."""
    db = sqlite3.connect(address(path, "immutable=1"), uri=True)
    try:
        db.text_factory = text
        return str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    finally:
        db.close()


def _both(old: str, new: str) -> sqlite3.Connection:
    db = sqlite3.connect("file::memory:", uri=True, isolation_level=None, timeout=_WAIT_SECONDS)
    db.text_factory = text
    try:
        db.execute("ATTACH ? AS old", (address(old, "immutable=1"),))
        db.execute("ATTACH ? AS new", (address(new, "mode=rw"),))
        db.execute("PRAGMA query_only=ON")
        db.execute("PRAGMA trusted_schema=OFF")
        db.execute("BEGIN")
    except BaseException:
        db.close()
        raise
    return db


def _settings(db: sqlite3.Connection, name: str) -> Iterator[_TablePart]:
    lines: list[str] = []
    for setting in _SETTINGS:
        was, is_ = (db.execute(f"PRAGMA {s}.{setting}").fetchone()[0] for s in ("old", "new"))
        if was != is_:
            lines += [f"- PRAGMA {setting}={was}\n", f"+ PRAGMA {setting}={is_}\n"]
    if lines:
        count = len(lines) // 2
        yield _TablePart("", "modified", (count, count), [f"database {name}\n", *lines])


def _tables(db: sqlite3.Connection, name: str) -> Iterator[_TablePart]:
    old, new = _schemas(db, "old"), _schemas(db, "new")
    for table in sorted(old.keys() | new.keys()):
        part = _table(db, f"{name}/{table}", table, (old.get(table), new.get(table)))
        if part is not None:
            yield part


def _schemas(db: sqlite3.Connection, side: str) -> dict[str, _Schema]:
    rows = db.execute(
        f"SELECT tbl_name, type, sql FROM {side}.sqlite_master"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name"
    )
    found: dict[str, _Schema] = {}
    # A table of schemas that somebody wrote himself can hold anything.
    for table, kind, sql in ((str(one), str(two), str(three)) for one, two, three in rows):
        schema = found.setdefault(table, _Schema())
        schema.kind = kind if kind in ("table", "view") else schema.kind
        schema.statements.append(sql)
    return found


def _table(
    db: sqlite3.Connection, title: str, table: str, schemas: tuple[_Schema | None, _Schema | None]
) -> _TablePart | None:
    old, new = schemas
    was = old.statements if old else []
    is_ = new.statements if new else []
    removed = [sql for sql in was if sql not in is_]
    added = [sql for sql in is_ if sql not in was]
    rows = changed_rows(db, table, old=_rows_of(old), new=_rows_of(new))
    if not (removed or added or rows.any):
        return None
    kind = "modified"
    if old is None or new is None:
        kind = "added" if old is None else "deleted"
    counts = (len(added) + rows.added + rows.changed, len(removed) + rows.removed + rows.changed)
    what = (new or old or _Schema()).kind or "table"
    lines = [
        f"{what} {title}: {_in_words(rows)}\n",
        *(f"- {line}\n" for sql in removed for line in sql.splitlines()),
        *(f"+ {line}\n" for sql in added for line in sql.splitlines()),
        *(f"{line}\n" for line in rows.lines),
    ]
    return _TablePart(table, kind, counts, lines)


def _rows_of(schema: _Schema | None) -> bool:
    return schema is not None and schema.has_rows


def _in_words(rows: RowChanges) -> str:
    return f"rows {rows.added} added, {rows.removed} removed, {rows.changed} changed"


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
