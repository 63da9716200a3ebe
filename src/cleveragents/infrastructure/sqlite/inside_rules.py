"""Inside: what SQL of a plan may do, and where one statement ends and the next begins."""

import sqlite3
from collections.abc import Callable, Iterator

# Pragmas that only tell something; an argument names a table or an index.
_TELLING = frozenset(
    [
        "application_id",
        "auto_vacuum",
        "collation_list",
        "compile_options",
        "data_version",
        "database_list",
        "encoding",
        "foreign_keys",
        "foreign_key_check",
        "foreign_key_list",
        "freelist_count",
        "function_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "journal_mode",
        "page_count",
        "page_size",
        "pragma_list",
        "quick_check",
        "schema_version",
        "table_info",
        "table_list",
        "table_xinfo",
        "user_version",
    ]
)
_WITH_NAME = frozenset(
    [
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    ]
)
# Settings that belong to a migration and are undone with the transaction, or end with it.
_SETTABLE = frozenset(
    [
        "application_id",
        "defer_foreign_keys",
        "legacy_alter_table",
        "recursive_triggers",
        "user_version",
    ]
)
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer"}


# What may not be done, and what to do instead.
Refusal = tuple[str, str]
# Gives back why something may not be done, if so: the action's code, and what it is about.
Allowed = Callable[[int, str | None, str | None], Refusal | None]


class StatementRules:
    """Asked by SQLite about everything that a statement would do; remembers why it said no."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._own_transaction = False
        self.refusal: Refusal | None = None

    def __call__(self, action: int, one: str | None, two: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_TRANSACTION and self._own_transaction:
            return sqlite3.SQLITE_OK
        refusal = self._allowed(action, one, two)
        if refusal is None:
            return sqlite3.SQLITE_OK
        self.refusal = refusal
        return sqlite3.SQLITE_DENY

    def run_our_own(self, db: sqlite3.Connection, statement: str) -> None:
        """One that begins or ends a transaction."""
        self._own_transaction = True
        try:
            db.execute(statement)
        finally:
            self._own_transaction = False


def may_write(action: int, one: str | None, two: str | None) -> Refusal | None:
    if action == sqlite3.SQLITE_PRAGMA:
        name = (one or "").lower()
        return None if name in _SETTABLE else _pragma(name, two)
    if action == sqlite3.SQLITE_TRANSACTION:
        return (
            "the call is one transaction already",
            "leave BEGIN, COMMIT and ROLLBACK out of `sql`",
        )
    # An empty name is a temporary database of SQLite's own, which VACUUM needs.
    if action == sqlite3.SQLITE_DETACH or (action == sqlite3.SQLITE_ATTACH and one != ""):
        return ("no other database file can be reached", "use only tables of this resource")
    return _function(action, two)


def may_read(action: int, one: str | None, two: str | None) -> Refusal | None:
    if action == sqlite3.SQLITE_PRAGMA:
        return _pragma((one or "").lower(), two)
    # SQLite asks this about its own table functions, such as json_each; nothing is written then.
    declares = action == sqlite3.SQLITE_UPDATE and one == "sqlite_master"
    if action not in _READING and not declares:
        return ("the statement would write", "write with sql.execute")
    return _function(action, two)


def _pragma(name: str, argument: str | None) -> Refusal | None:
    if name in _TELLING and (argument is None or name in _WITH_NAME):
        return None
    return (f"PRAGMA {name} is not allowed here", "pragmas that only tell something are")


def _function(action: int, name: str | None) -> Refusal | None:
    if action == sqlite3.SQLITE_FUNCTION and (name or "").lower() in _FORBIDDEN_FUNCTIONS:
        return (f"the function {name} is not allowed", "use other functions")
    return None


def statements(sql: str) -> Iterator[str]:
    """The statements of a script; texts, comments and triggers may hold semicolons."""
    start = 0
    position = sql.find(";")
    while position >= 0:
        part = sql[start : position + 1]
        if sqlite3.complete_statement(part):
            if not _is_empty(part):
                yield part.strip()
            start = position + 1
        position = sql.find(";", position + 1)
    if not _is_empty(sql[start:]):
        yield sql[start:].strip()


def _is_empty(part: str) -> bool:
    """Nothing but spaces, comments and a semicolon."""
    rest = part.strip()
    while rest.startswith(("--", "/*")):
        end = "\n" if rest.startswith("--") else "*/"
        rest = rest.partition(end)[2].strip()
    return rest in ("", ";")
