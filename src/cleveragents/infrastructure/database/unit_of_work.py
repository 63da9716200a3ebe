"""The transaction: leaving it undoes it, only `commit` keeps it.

A repository is made where it is asked for, and loaded by who asks first (ADR 0077).
"""

import sqlite3
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from cleveragents.infrastructure.database.checkpoint_repository import SqlCheckpoints
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.fence import Fence, HeldLeases
from cleveragents.infrastructure.database.plan_repository import SqlPlans, SqlResources, SqlSubplans


class SqlUnitOfWork:
    def __init__(self, connection: sqlite3.Connection, fence: Fence) -> None:
        self._connection = connection
        self._fence = fence
        self.plans = SqlPlans(connection, fence)
        self.resources = SqlResources(connection, fence)
        self.checkpoints = SqlCheckpoints(connection, fence)
        self.subplans = SqlSubplans(connection, fence)

    @property
    def decisions(self):
        from cleveragents.infrastructure.database.decision_repository import SqlDecisions

        return SqlDecisions(self._connection, self._fence)

    @property
    def tool_calls(self):
        from cleveragents.infrastructure.database.decision_repository import SqlToolCalls

        return SqlToolCalls(self._connection, self._fence)

    @property
    def timelines(self):
        from cleveragents.infrastructure.database.decision_repository import SqlTimelines

        return SqlTimelines(self._connection, self._fence)

    @property
    def applied(self):
        from cleveragents.infrastructure.database.effect_repository import SqlAppliedChanges

        return SqlAppliedChanges(self._connection, self._fence)

    @property
    def effects(self):
        from cleveragents.infrastructure.database.effect_repository import SqlEffects

        return SqlEffects(self._connection, self._fence)

    @property
    def corrections(self):
        from cleveragents.infrastructure.database.decision_repository import SqlCorrections

        return SqlCorrections(self._connection, self._fence)

    @property
    def messages(self):
        from cleveragents.infrastructure.database.message_repository import SqlMessages

        return SqlMessages(self._connection, self._fence)

    def raise_epochs(self) -> None:
        self._fence.raise_epochs()

    def commit(self) -> None:
        self._fence.commit()
        # What follows in the same block is a transaction again, and is undone without a commit.
        self._connection.execute("BEGIN")


class SqlUnitOfWorkFactory:
    def __init__(self, database: Database, leases: HeldLeases) -> None:
        self._database = database
        self._leases = leases

    @contextmanager
    def __call__(self) -> Generator[SqlUnitOfWork]:
        # IMMEDIATE: a transaction that reads first and writes later would otherwise fail at once
        # when another process wrote in between, busy timeout or not.
        with self._database.writer, self._transaction("BEGIN IMMEDIATE") as uow:
            uow.raise_epochs()
            yield uow

    def reading(self) -> AbstractContextManager[SqlUnitOfWork]:
        return self._raising() if self._leases.to_raise() else self._transaction("BEGIN")

    @contextmanager
    def _raising(self) -> Generator[SqlUnitOfWork]:
        """The first one under a lock raises the plan's epoch, and so has to be one that may write.

        It is not worth a sync of its own: a power cut that takes it back takes all processes along
        that it could keep from writing, and the next commit brings both to the disk.
        """
        connection = self._database.connection()
        connection.execute("PRAGMA synchronous = NORMAL")
        try:
            with self() as uow:
                yield uow
        finally:
            connection.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _transaction(self, begin: str) -> Generator[SqlUnitOfWork]:
        with self._database.translated():
            connection = self._database.connection()
            fence = Fence(connection, self._leases)
            try:
                # In here, because Ctrl-C can come right after it.
                connection.execute(begin)
                yield SqlUnitOfWork(connection, fence)
            finally:
                fence.end()
