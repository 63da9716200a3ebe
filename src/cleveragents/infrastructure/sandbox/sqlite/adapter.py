"""The record of the type sqlite: one database file, with the journals beside it."""

import os

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.infrastructure.sandbox.adapter import part, told_by
from cleveragents.infrastructure.sandbox.workbench import Workbench


class SqliteAdapter:
    kind = SQLITE

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @part
    def sandbox(self):
        from cleveragents.infrastructure.sandbox.sqlite.sandbox import SqliteDatabases

        bench = self._bench
        return SqliteDatabases(bench.sandboxes, bench.scratch, self.snapshots, bench.databases)

    @part
    def applier(self):
        from cleveragents.infrastructure.sandbox.sqlite.apply import SqliteApply

        bench = self._bench
        return SqliteApply(bench.scratch, self.snapshots, self.sandbox, bench.databases)

    @part
    def snapshots(self):
        from cleveragents.infrastructure.snapshots.pages.engine import PagesEngine

        bench = self._bench
        return PagesEngine(bench.snapshots, bench.connections, bench.databases)

    @part
    def merge(self):
        from cleveragents.infrastructure.merging.database_merge import DatabaseMerge

        return DatabaseMerge(self.snapshots)

    @part
    def location(self):
        from cleveragents.infrastructure.sandbox.location import PlainLocation

        return PlainLocation(os.path.isfile)

    @part
    def branches(self):
        from cleveragents.infrastructure.sandbox.sqlite.sandbox import DatabaseBranches

        return DatabaseBranches(self.snapshots)

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        return self.sandbox.diff_between(resource, old, new)

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:
        return told_by(self.sandbox.diff(resource))

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        return self.sandbox.diff_since(resource, ref)
