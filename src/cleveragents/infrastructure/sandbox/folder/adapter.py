"""The record of the type fs-directory: a folder as it is, whatever it holds."""

import os
from collections.abc import Sequence

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY
from cleveragents.infrastructure.sandbox.adapter import part, told_by
from cleveragents.infrastructure.sandbox.workbench import Workbench


class FolderAdapter:
    kind = FS_DIRECTORY

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @part
    def sandbox(self):
        from cleveragents.infrastructure.sandbox.folder.sandbox import FsDirectories

        return FsDirectories(self._bench.sandboxes, self.snapshots)

    @part
    def applier(self):
        from cleveragents.infrastructure.sandbox.folder.apply.prepare import FolderApply

        return FolderApply(self.snapshots)

    @part
    def snapshots(self):
        from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
        from cleveragents.infrastructure.snapshots.tree.extra_state import NoExtraState

        bench = self._bench
        return TreeEngine(
            bench.snapshots,
            bench.scratch,
            lambda _: NoExtraState(),
            bench.tracker,
            bench.connections,
        )

    @part
    def merge(self):
        from cleveragents.infrastructure.merging.tree_merge import TreeMerge

        return TreeMerge(self.snapshots, self._bench.git_inside, _nothing)

    @part
    def location(self):
        from cleveragents.infrastructure.sandbox.location import PlainLocation

        return PlainLocation(os.path.isdir)

    @part
    def branches(self):
        from cleveragents.infrastructure.sandbox.branching import TreeBranches

        return TreeBranches(self.snapshots)

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.folder.diff import diff_between

        return diff_between(self.snapshots, resource, old, new)

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:
        return told_by(self.sandbox.diff(resource))

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.folder.diff import diff_since

        return diff_since(self.snapshots, resource, ref)


def _nothing(resource: PlanResource, paths: Sequence[bytes]) -> frozenset[bytes]:  # noqa: ARG001 - of a folder nothing is ignored
    return frozenset()
