"""The record of the type sqlite: one database file, with the journals beside it."""

import os
from typing import TYPE_CHECKING

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.infrastructure.sandbox.adapter import part
from cleveragents.infrastructure.sandbox.workbench import Workbench

if TYPE_CHECKING:
    from cleveragents.infrastructure.merging.database_merge import DatabaseMerge
    from cleveragents.infrastructure.sandbox.location import PlainLocation
    from cleveragents.infrastructure.sandbox.sqlite.apply import SqliteApply
    from cleveragents.infrastructure.sandbox.sqlite.sandbox import DatabaseBranches, SqliteDatabases
    from cleveragents.infrastructure.snapshots.pages.engine import PagesEngine


class SqliteAdapter:
    kind = SQLITE

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @part
    def sandbox(self) -> "SqliteDatabases":
        from cleveragents.infrastructure.sandbox.sqlite.sandbox import SqliteDatabases

        bench = self._bench
        return SqliteDatabases(bench.sandboxes, bench.scratch, self.snapshots, bench.databases)

    @part
    def applier(self) -> "SqliteApply":
        from cleveragents.infrastructure.sandbox.sqlite.apply import SqliteApply

        bench = self._bench
        return SqliteApply(bench.scratch, self.snapshots, self.sandbox.diff, bench.databases)

    @part
    def snapshots(self) -> "PagesEngine":
        from cleveragents.infrastructure.snapshots.pages.engine import PagesEngine

        bench = self._bench
        return PagesEngine(bench.snapshots, bench.connections, bench.databases)

    @part
    def merge(self) -> "DatabaseMerge":
        from cleveragents.infrastructure.merging.database_merge import DatabaseMerge

        return DatabaseMerge(self.snapshots)

    @part
    def location(self) -> "PlainLocation":
        from cleveragents.infrastructure.sandbox.location import PlainLocation

        return PlainLocation(os.path.isfile)

    @part
    def branches(self) -> "DatabaseBranches":
        from cleveragents.infrastructure.sandbox.sqlite.sandbox import DatabaseBranches

        return DatabaseBranches(self.snapshots)

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        return self.sandbox.diff_since(resource, ref)
