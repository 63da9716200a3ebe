"""Removing all that is on record of a plan."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.fence import Fence, HeldLeases

_FAMILY = "SELECT plan_id FROM subplans WHERE root_id = ? UNION ALL SELECT ?"
_STATES = """
DELETE FROM checkpoint_resource_states WHERE group_id IN
    (SELECT group_id FROM checkpoint_groups WHERE plan_id = ?)
"""
# Whichever they are: a table that is added later must not keep rows of a plan that is gone.
_TABLES = """
SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c ON c.name = 'plan_id'
WHERE t.type = 'table'
"""


class SqlPlanRecords:
    def __init__(self, database: Database, leases: HeldLeases) -> None:
        self._database = database
        self._leases = leases

    def remove(self, plan_id: PlanId) -> None:
        with self._database.translated(), self._database.writer:
            connection = self._database.connection()
            with _unreferenced(connection):
                self._remove_all(connection, plan_id)

    def _remove_all(self, connection: sqlite3.Connection, plan_id: PlanId) -> None:
        fence = Fence(connection, self._leases)
        connection.execute("BEGIN IMMEDIATE")
        try:
            fence.raise_epochs()
            family = [PlanId(row[0]) for row in connection.execute(_FAMILY, (plan_id, plan_id))]
            for member in family:  # before any row goes: the fence looks for who is above
                fence.writing(member)
            tables = [str(row[0]) for row in connection.execute(_TABLES)]
            for member in family:
                _remove_rows(connection, tables, member)
            fence.commit()
        finally:
            fence.end()


def _remove_rows(connection: sqlite3.Connection, tables: Sequence[str], plan_id: PlanId) -> None:
    connection.execute(_STATES, (plan_id,))
    for table in tables:
        connection.execute(f"DELETE FROM {table} WHERE plan_id = ?", (plan_id,))


@contextmanager
def _unreferenced(connection: sqlite3.Connection) -> Generator[None]:
    """All rows of a plan name only each other. SQLite would look for each of them through whole
    tables whether another row names it."""
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        yield
    finally:
        connection.execute("PRAGMA foreign_keys = ON")
