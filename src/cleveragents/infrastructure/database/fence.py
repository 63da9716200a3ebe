"""The leases that this process holds, and the check that stands before every write (ADR 0076).

Taking a plan's lock only notes that its lease is wanted. The next transaction, whatever it is for,
raises the epoch of the plan's row before it reads anything; so what is read under a lock can be
changed by nobody else any more. Every transaction that writes rows of a plan compares, once, the
epoch on record with the one that was raised here. BEGIN IMMEDIATE lets nobody in between the
comparison and the commit. Not guaranteed: what an owner that was overtaken does to files until its
next write.
"""

import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from cleveragents.domain.ids import PlanId
from cleveragents.domain.lease import refuse_overtaken

_RAISE = "UPDATE plans SET lease_epoch = lease_epoch + 1 WHERE plan_id = ? RETURNING lease_epoch"
_LINE = """
WITH RECURSIVE line(plan_id) AS (
    VALUES (?) UNION ALL SELECT s.parent_id FROM subplans s JOIN line ON s.plan_id = line.plan_id
) SELECT p.plan_id, p.lease_epoch FROM line JOIN plans p ON p.plan_id = line.plan_id
"""


class HeldLeases:
    """The plans whose lock this process has, each with the epoch that it raised, once it has."""

    def __init__(self) -> None:
        self._epochs: dict[PlanId, int | None] = {}

    @contextmanager
    def held(self, plan_id: PlanId) -> Generator[None]:
        self._epochs[plan_id] = None
        try:
            yield
        finally:
            del self._epochs[plan_id]

    def to_raise(self) -> list[PlanId]:
        return [plan_id for plan_id, epoch in list(self._epochs.items()) if epoch is None]

    def epoch(self, plan_id: PlanId) -> int | None:
        """None if we do not hold it, or have yet to raise it."""
        return self._epochs.get(plan_id)

    def note(self, epochs: Mapping[PlanId, int]) -> None:
        for plan_id, epoch in epochs.items():
            if plan_id in self._epochs:  # a thread may have let go meanwhile
                self._epochs[plan_id] = epoch


class Fence:
    """That of one transaction."""

    def __init__(self, connection: sqlite3.Connection, leases: HeldLeases) -> None:
        self._connection = connection
        self._leases = leases
        self._admitted: set[PlanId] = set()
        self._raised: dict[PlanId, int] = {}

    def raise_epochs(self) -> None:
        """For the locks that were taken since the last transaction. Whatever becomes of what
        follows in this one, that stays: see `end`."""
        raised: dict[PlanId, int] = {}
        for plan_id in self._leases.to_raise():
            for row in self._connection.execute(_RAISE, (plan_id,)):
                raised[plan_id] = row[0]
        if raised:
            self._connection.execute("SAVEPOINT raised")
            self._raised = raised

    def writing(self, plan_id: PlanId) -> sqlite3.Connection:
        """The connection to write rows of this plan with. Raises PlanOvertakenError."""
        if plan_id not in self._admitted:
            self.refuse_overtaken(plan_id)
            self._admitted.add(plan_id)
        return self._connection

    def making(self, plan_id: PlanId) -> sqlite3.Connection:
        """For a new plan, which is nobody else's: until the commit no other process knows it."""
        self._admitted.add(plan_id)
        return self._connection

    def refuse_overtaken(self, plan_id: PlanId) -> None:
        rows = self._connection.execute(_LINE, (plan_id,))
        stored = {PlanId(row[0]): int(row[1]) for row in rows}
        held = {key: self._raised.get(key, self._leases.epoch(key)) for key in stored}
        if stored:  # else there are no rows of it, and there can be none
            refuse_overtaken(plan_id, stored, held)

    def commit(self) -> None:
        self._connection.execute("COMMIT")
        self._leases.note(self._raised)
        self._raised = {}
        self._admitted.clear()

    def end(self) -> None:
        """Undo what was not committed, except that epochs were raised."""
        try:
            if self._raised and self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO raised")
                self.commit()
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


class FencedRows:
    """Reads by `_connection`, and writes rows of a plan by `_fence.writing(plan_id)` only."""

    def __init__(self, connection: sqlite3.Connection, fence: Fence) -> None:
        self._connection = connection
        self._fence = fence
