"""Inside: tells the rows of one table apart in two attached databases, `old` and `new`.

Rows are matched by key, in SQL: with a large database the time grows, and the memory does not.
"""

import sqlite3
from collections.abc import Sequence

_SHOWN_ROWS = 20
_SHOWN_CHARS = 80


class RowChanges:
    """Counts are of all rows; `lines` show the first few of them."""

    def __init__(
        self, *, added: int = 0, removed: int = 0, changed: int = 0, lines: Sequence[str] = ()
    ) -> None:
        self.added = added
        self.removed = removed
        self.changed = changed
        self.lines = lines

    @property
    def any(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class _Table:
    """`key` names a row: the primary key of a table without row ids, or else the row id."""

    def __init__(self, name: str, key: tuple[str, ...], columns: tuple[str, ...]) -> None:
        self.name = name
        self.key = key
        self.columns = columns

    def of(self, side: str) -> str:
        return f"{side}.{quoted(self.name)}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def changed_rows(db: sqlite3.Connection, table: str, *, old: bool, new: bool) -> RowChanges:
    """`old` and `new` say on which sides there are rows to be compared."""
    if old and new:
        return _between(db, table)
    if not (old or new):
        return RowChanges()
    side = "old" if old else "new"
    found = _table(db, side, table)
    count = db.execute(f"SELECT count(*) FROM {found.of(side)}").fetchone()[0]
    rows = db.execute(
        f"SELECT {_shown(found.columns, 'x')} FROM {found.of(side)} x LIMIT {_SHOWN_ROWS}"
    )
    sign = "-" if old else "+"
    lines = _lines([f"{sign} ({text})" for (text,) in rows], count)
    return RowChanges(removed=count if old else 0, added=0 if old else count, lines=lines)


def _between(db: sqlite3.Connection, table: str) -> RowChanges:
    old, new = _table(db, "old", table), _table(db, "new", table)
    if old.key != new.key:
        # Rows cannot be matched any more: all of them are other ones.
        gone = changed_rows(db, table, old=True, new=False)
        come = changed_rows(db, table, old=False, new=True)
        lines = (*gone.lines, *come.lines)
        return RowChanges(added=come.added, removed=gone.removed, lines=lines)
    match = " AND ".join(f"o.{quoted(k)}=n.{quoted(k)}" for k in new.key)
    known = {column.lower(): column for column in old.columns}
    pairs = [(known.pop(c.lower(), None), c) for c in new.columns]
    # A column that came or went has changed the rows in which it says something.
    tests = [_differs(was, is_) if was else f"n.{quoted(is_)} NOT NULL" for was, is_ in pairs]
    tests += [f"o.{quoted(gone)} NOT NULL" for gone in known.values()]
    differs = " OR ".join(tests) or "0"
    changed = f"FROM {new.of('new')} n JOIN {old.of('old')} o ON {match} WHERE {differs}"
    added = _only_in(new.of("new"), "n", old.of("old"), "o", match)
    removed = _only_in(old.of("old"), "o", new.of("new"), "n", match)
    counts = [db.execute(f"SELECT count(*) {part}").fetchone()[0] for part in
              (added, removed, changed)]  # fmt: skip
    lines = [
        *_samples(db, f"SELECT {_shown(old.columns, 'o')} {removed}", "-"),
        *_samples(db, f"SELECT {_shown(new.columns, 'n')} {added}", "+"),
        *_samples(
            db, f"SELECT {_shown(old.columns, 'o')}, {_shown(new.columns, 'n')} {changed}", "-+"
        ),
    ]
    return RowChanges(
        added=counts[0],
        removed=counts[1],
        changed=counts[2],
        lines=_lines(lines, counts[0] + counts[1] + 2 * counts[2]),
    )


def _table(db: sqlite3.Connection, side: str, table: str) -> _Table:
    rows = db.execute(f"PRAGMA {side}.table_info({quoted(table)})").fetchall()
    columns = tuple(row[1] for row in rows)
    taken = {column.lower() for column in columns}
    for name in ("rowid", "_rowid_", "oid"):
        if name not in taken and _has(db, f"{side}.{quoted(table)}", name):
            return _Table(table, (name,), columns)
    primary = sorted((row[5], row[1]) for row in rows if row[5])
    return _Table(table, tuple(name for _, name in primary) or columns, columns)


def _has(db: sqlite3.Connection, table: str, column: str) -> bool:
    try:
        db.execute(f"SELECT {column} FROM {table} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


def _differs(was: str, is_: str) -> str:
    # BINARY, for a column's own collation may call two texts equal; typeof, for 1 equals 1.0.
    one, two = f"o.{quoted(was)}", f"n.{quoted(is_)}"
    return f"{one} IS NOT {two} COLLATE BINARY OR typeof({one})<>typeof({two})"


def _only_in(here: str, this: str, there: str, that: str, match: str) -> str:
    return f"FROM {here} {this} WHERE NOT EXISTS (SELECT 1 FROM {there} {that} WHERE {match})"


def _shown(columns: Sequence[str], side: str) -> str:
    """An SQL expression for a row as text, with long values cut."""
    texts = [_value(f"{side}.{quoted(column)}") for column in columns]
    return " || ', ' || ".join(texts) or "''"


def _value(column: str) -> str:
    return (
        f"CASE typeof({column}) WHEN 'blob' THEN '<' || length({column}) || ' bytes>'"
        f" WHEN 'text' THEN quote(substr({column}, 1, {_SHOWN_CHARS}))"
        f" || iif(length({column}) > {_SHOWN_CHARS}, '…', '') ELSE quote({column}) END"
    )


def _samples(db: sqlite3.Connection, query: str, signs: str) -> list[str]:
    rows = db.execute(f"{query} LIMIT {_SHOWN_ROWS}")
    return [
        f"{sign} ({_one_line(text)})" for row in rows for sign, text in zip(signs, row, strict=True)
    ]


def _one_line(text: str) -> str:
    return "\\n".join(text.splitlines())


def _lines(lines: Sequence[str], count: int) -> tuple[str, ...]:
    rest = count - len(lines)
    return (*lines, f"  and {rest} more lines") if rest > 0 else tuple(lines)
