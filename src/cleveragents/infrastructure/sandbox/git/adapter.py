"""The record of the type git-checkout: a folder with a repository."""

from functools import cached_property

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import GIT_CHECKOUT
from cleveragents.infrastructure.sandbox.adapter import part, told_by
from cleveragents.infrastructure.sandbox.workbench import Workbench


class GitAdapter:
    kind = GIT_CHECKOUT

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @part
    def sandbox(self):
        from cleveragents.infrastructure.sandbox.git.sandbox import GitCheckouts

        bench = self._bench
        layers = bench.layers
        return GitCheckouts(bench.sandboxes, bench.scratch, self._pins, self._views, layers)

    @part
    def applier(self):
        from cleveragents.infrastructure.sandbox.git.apply.prepare import GitApply

        return GitApply(self._bench.scratch, self._pins, self._views, self.snapshots)

    @part
    def snapshots(self):
        from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine

        bench = self._bench
        return TreeEngine(
            bench.snapshots, bench.scratch, self._state_of, bench.tracker, bench.connections
        )

    @part
    def merge(self):
        from cleveragents.infrastructure.merging.checkout_merge import CheckoutMerge
        from cleveragents.infrastructure.merging.tree_merge import TreeMerge

        trees = TreeMerge(self.snapshots, self._bench.git_inside, self._views.ignored)
        return CheckoutMerge(trees, self.snapshots, self._state_of)

    @part
    def location(self):
        from cleveragents.infrastructure.sandbox.git.location import RepositoryLocation

        return RepositoryLocation(self._pins)

    @part
    def branches(self):
        from cleveragents.infrastructure.sandbox.branching import TreeBranches
        from cleveragents.infrastructure.sandbox.git.repository.own_repository import (
            branch_repository,
        )

        return TreeBranches(self.snapshots, frozenset({b".git"}), branch_repository)

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.folder.diff import diff_between

        return diff_between(self.snapshots, resource, old, new)

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.folder.diff import diff_since

        return diff_since(self.snapshots, resource, ref)

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:
        """By the snapshots, which know what has not changed. Who cannot tell so compares it all."""
        began = resource.base_snapshot
        if began is None or resource.exclude or resource.cut_out:
            return told_by(self.sandbox.diff(resource))
        try:
            differing = self.diff_since(resource, began).files
        except SnapshotDamagedError:
            return told_by(self.sandbox.diff(resource))
        left = self.sandbox.left_behind(resource)
        folders = tuple(path for path in left if path.endswith("/"))
        own = (file.path for file in differing if not file.path.startswith(folders))
        return tuple(sorted({*own, *left}))

    @cached_property
    def _pins(self):
        from cleveragents.infrastructure.sandbox.git.repository.pins import Pins

        return Pins(self._bench.installation)

    @cached_property
    def _views(self):
        from cleveragents.infrastructure.sandbox.git.views import GitViews

        return GitViews(lambda: self._bench.git_inside)

    def _state_of(self, resource: PlanResource):
        from cleveragents.infrastructure.sandbox.git.repository.state import GitState

        return GitState(resource, self._views)
