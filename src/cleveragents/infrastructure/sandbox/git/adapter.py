"""The record of the type git-checkout: a folder with a repository."""

from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import GIT_CHECKOUT
from cleveragents.infrastructure.sandbox.adapter import part
from cleveragents.infrastructure.sandbox.workbench import Workbench

if TYPE_CHECKING:
    from cleveragents.infrastructure.merging.checkout_merge import CheckoutMerge
    from cleveragents.infrastructure.sandbox.branching import TreeBranches
    from cleveragents.infrastructure.sandbox.git.apply.prepare import GitApply
    from cleveragents.infrastructure.sandbox.git.location import RepositoryLocation
    from cleveragents.infrastructure.sandbox.git.repository.pins import Pins
    from cleveragents.infrastructure.sandbox.git.repository.state import GitState
    from cleveragents.infrastructure.sandbox.git.sandbox import GitCheckouts
    from cleveragents.infrastructure.sandbox.git.views import GitViews
    from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine


class GitAdapter:
    kind = GIT_CHECKOUT

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    @part
    def sandbox(self) -> "GitCheckouts":
        from cleveragents.infrastructure.sandbox.git.sandbox import GitCheckouts

        bench = self._bench
        return GitCheckouts(bench.sandboxes, bench.scratch, self._pins, self._views)

    @part
    def applier(self) -> "GitApply":
        from cleveragents.infrastructure.sandbox.git.apply.prepare import GitApply

        return GitApply(self._bench.scratch, self._pins, self._views)

    @part
    def snapshots(self) -> "TreeEngine":
        from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine

        bench = self._bench
        return TreeEngine(
            bench.snapshots, bench.scratch, self._state_of, bench.tracker, bench.connections
        )

    @part
    def merge(self) -> "CheckoutMerge":
        from cleveragents.infrastructure.merging.checkout_merge import CheckoutMerge
        from cleveragents.infrastructure.merging.text_merge import TextMerge
        from cleveragents.infrastructure.merging.tree_merge import TreeMerge

        trees = TreeMerge(self.snapshots, TextMerge(self._bench.git_inside), self._views.ignored)
        return CheckoutMerge(trees, self.snapshots, self._state_of)

    @part
    def location(self) -> "RepositoryLocation":
        from cleveragents.infrastructure.sandbox.git.location import RepositoryLocation

        return RepositoryLocation(self._pins)

    @part
    def branches(self) -> "TreeBranches":
        from cleveragents.infrastructure.sandbox.branching import TreeBranches
        from cleveragents.infrastructure.sandbox.git.repository.own_repository import (
            branch_repository,
        )

        return TreeBranches(self.snapshots, frozenset({b".git"}), branch_repository)

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.folder.diff import diff_since

        return diff_since(self.snapshots, resource, ref)

    @cached_property
    def _pins(self) -> "Pins":
        from cleveragents.infrastructure.sandbox.git.repository.pins import Pins

        return Pins(self._bench.installation)

    @cached_property
    def _views(self) -> "GitViews":
        from cleveragents.infrastructure.sandbox.git.views import GitViews

        return GitViews(self._bench.git_inside)

    def _state_of(self, resource: PlanResource) -> "GitState":
        from cleveragents.infrastructure.sandbox.git.repository.state import GitState

        return GitState(resource, self._views)
