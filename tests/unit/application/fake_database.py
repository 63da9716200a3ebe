"""The unit of work in memory: what is not committed is gone."""

from collections.abc import Generator
from contextlib import contextmanager

from fake_checkpoints import MemoryCheckpoints
from fake_tables import (
    MemoryApplied,
    MemoryCorrections,
    MemoryDecisions,
    MemoryEffects,
    MemoryMessages,
    MemoryPlans,
    MemoryResources,
    MemorySubplans,
    MemoryTimelines,
    MemoryToolCalls,
    Tables,
)
from fakes import Faults


class MemoryUnitOfWork:
    def __init__(self, database: "MemoryDatabase", *, writing: bool) -> None:
        self._database = database
        self._writing = writing
        self._tables = tables = database.tables.copy()
        self.plans = MemoryPlans(tables)
        self.resources = MemoryResources(tables)
        self.decisions = MemoryDecisions(tables)
        self.tool_calls = MemoryToolCalls(tables)
        self.checkpoints = MemoryCheckpoints(tables)
        self.timelines = MemoryTimelines(tables)
        self.effects = MemoryEffects(tables)
        self.applied = MemoryApplied(tables)
        self.subplans = MemorySubplans(tables)
        self.corrections = MemoryCorrections(tables)
        self.messages = MemoryMessages(tables)

    def commit(self) -> None:
        assert self._writing
        self._database.keep(self._tables)


class MemoryDatabase:
    """`history` holds the tables as each commit left them."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._open = False
        self.tables = Tables()
        self.history: list[Tables] = []

    def __call__(self):
        return self._transaction(writing=True)

    def reading(self):
        return self._transaction(writing=False)

    def keep(self, tables: Tables) -> None:
        self._faults.reach("commit")
        self.tables = tables.copy()
        self.history.append(tables.copy())
        self._faults.reach("committed")

    @contextmanager
    def _transaction(self, *, writing: bool) -> Generator[MemoryUnitOfWork]:
        assert not self._open, "one connection has one transaction at a time"
        self._faults.reach("begin" if writing else "read")
        self._open = True
        try:
            yield MemoryUnitOfWork(self, writing=writing)
        finally:
            self._open = False
