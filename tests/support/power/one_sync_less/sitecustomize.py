"""Python loads this at its start: the metadata database is opened with synchronous=NORMAL."""

import sqlite3
from typing import Any

_connect = sqlite3.connect


class _Lax(sqlite3.Connection):
    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute(
            sql.replace("synchronous = FULL", "synchronous = NORMAL"), *parameters
        )


def _connected(database: Any, *args: Any, **keys: Any) -> sqlite3.Connection:
    if str(database).split("?")[0].endswith("cleveragents.db"):
        keys["factory"] = _Lax
    return _connect(database, *args, **keys)


sqlite3.connect = _connected
