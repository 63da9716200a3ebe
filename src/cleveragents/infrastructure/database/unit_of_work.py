"""The transaction: leaving it undoes it, only `commit` keeps it."""

import sqlite3
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from cleveragents.infrastructure.database.checkpoint_repository import SqlCheckpoints
from cleveragents.infrastructure.database.correction_repository import SqlCorrections
from cleveragents.infrastructure.database.decision_repository import (
    SqlDecisions,
    SqlTimelines,
    SqlToolCalls,
)
from cleveragents.infrastructure.database.effect_repository import SqlEffects
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.message_repository import SqlMessages
from cleveragents.infrastructure.database.plan_repository import SqlPlans, SqlResources
from cleveragents.infrastructure.database.subplan_repository import SqlSubplans


class SqlUnitOfWork:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.plans = SqlPlans(connection)
        self.resources = SqlResources(connection)
        self.decisions = SqlDecisions(connection)
        self.tool_calls = SqlToolCalls(connection)
        self.checkpoints = SqlCheckpoints(connection)
        self.timelines = SqlTimelines(connection)
        self.effects = SqlEffects(connection)
        self.subplans = SqlSubplans(connection)
        self.corrections = SqlCorrections(connection)
        self.messages = SqlMessages(connection)

    def commit(self) -> None:
        self._connection.execute("COMMIT")
        # What follows in the same block is a transaction again, and is undone without a commit.
        self._connection.execute("BEGIN")


class SqlUnitOfWorkFactory:
    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def __call__(self) -> Generator[SqlUnitOfWork]:
        # IMMEDIATE: a transaction that reads first and writes later would otherwise fail at once
        # when another process wrote in between, busy timeout or not.
        with self._database.writer, self._transaction("BEGIN IMMEDIATE") as uow:
            yield uow

    def reading(self) -> AbstractContextManager[SqlUnitOfWork]:
        return self._transaction("BEGIN")

    @contextmanager
    def _transaction(self, begin: str) -> Generator[SqlUnitOfWork]:
        with self._database.translated():
            connection = self._database.connection()
            try:
                # In here, because Ctrl-C can come right after it.
                connection.execute(begin)
                yield SqlUnitOfWork(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
