"""The record of databases that are worked on in place."""

from typing import TYPE_CHECKING

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import ResourceKind
from cleveragents.infrastructure.sandbox.adapter import ResourceMerge, SandboxBranches, part
from cleveragents.infrastructure.sandbox.in_place.adapter import without_children
from cleveragents.infrastructure.sandbox.workbench import Workbench

if TYPE_CHECKING:
    from cleveragents.infrastructure.sandbox.in_place.databases.engine import InPlacePages


class InPlaceDatabaseAdapter:
    def __init__(self, kind: ResourceKind, bench: Workbench) -> None:
        self.kind = kind
        self._bench = bench

    @part
    def sandbox(self):
        from cleveragents.infrastructure.sandbox.in_place.databases.places import InPlaceDatabases

        bench = self._bench
        return InPlaceDatabases(bench.data_dir, bench.scratch, self.snapshots, bench.databases)

    @part
    def applier(self):
        from cleveragents.infrastructure.sandbox.in_place.trees import InPlaceDone

        return InPlaceDone()

    @part
    def snapshots(self) -> "InPlacePages":
        from cleveragents.infrastructure.sandbox.in_place.databases.engine import InPlacePages

        bench = self._bench
        return InPlacePages(bench.snapshots, bench.connections, bench.databases, bench.scratch)

    @part
    def merge(self) -> ResourceMerge:
        raise without_children(self.kind)

    @part
    def branches(self) -> SandboxBranches:
        raise without_children(self.kind)

    @part
    def location(self):
        from cleveragents.infrastructure.sandbox.in_place.databases.places import DatabaseLocation

        return DatabaseLocation()

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        return self.sandbox.diff_between(resource, old, new)

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:  # noqa: ARG002 - nothing goes
        return ()

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        return self.sandbox.diff_since(resource, ref)
