"""The record of resources that are worked on in place, whichever of the types of trees they are."""

from functools import cached_property

from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import ResourceError
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import ResourceKind
from cleveragents.infrastructure.sandbox.adapter import ResourceMerge, SandboxBranches, part
from cleveragents.infrastructure.sandbox.workbench import Workbench


class InPlaceAdapter:
    def __init__(self, kind: ResourceKind, bench: Workbench) -> None:
        self.kind = kind
        self._bench = bench

    @part
    def sandbox(self):
        from cleveragents.infrastructure.sandbox.in_place.trees import InPlaceTrees

        bench = self._bench
        return InPlaceTrees(
            bench.data_dir, bench.installation, self._pins, self.snapshots, self._repositories
        )

    @part
    def applier(self):
        from cleveragents.infrastructure.sandbox.in_place.trees import InPlaceDone

        return InPlaceDone()

    @part
    def snapshots(self):
        from cleveragents.infrastructure.sandbox.in_place.engine import InPlaceEngine

        bench = self._bench
        return InPlaceEngine(
            (bench.snapshots, bench.scratch),
            self._state_of,
            bench.tracker,
            bench.connections,
            self._repositories,
        )

    @part
    def merge(self) -> ResourceMerge:
        raise without_children(self.kind)

    @part
    def branches(self) -> SandboxBranches:
        raise without_children(self.kind)

    @part
    def location(self):
        from cleveragents.infrastructure.sandbox.in_place.trees import InPlaceLocation

        return InPlaceLocation()

    def diff_between(self, resource: PlanResource, old: str, new: str) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.folder.diff import diff_between

        return diff_between(self.snapshots, resource, old, new)

    def only_here(self, resource: PlanResource) -> tuple[str, ...]:  # noqa: ARG002 - nothing goes
        return ()

    def diff_since(self, resource: PlanResource, ref: str) -> ResourceDiff:
        from cleveragents.infrastructure.sandbox.folder.diff import diff_since

        return diff_since(self.snapshots, resource, ref)

    @cached_property
    def _pins(self):
        from cleveragents.infrastructure.sandbox.git.repository.pins import Pins

        return Pins(self._bench.installation)

    @cached_property
    def _repositories(self):
        from cleveragents.infrastructure.sandbox.in_place.git_there import UsersRepositories

        return UsersRepositories(lambda: self._bench.git_inside)

    def _state_of(self, resource: PlanResource):
        from cleveragents.infrastructure.sandbox.in_place.git_keeping import KeptObjects
        from cleveragents.infrastructure.sandbox.in_place.git_state import CheckoutState, PlaceState
        from cleveragents.infrastructure.sandbox.in_place.linked_packs import LinkedPacks

        if not self.kind.has_repository:
            return PlaceState(resource)
        packs = LinkedPacks(self._bench.snapshots, resource)
        return CheckoutState(resource, self._repositories, KeptObjects(self._pins), packs)


def without_children(kind: ResourceKind) -> ResourceError:
    return ResourceError(
        f"a {kind.type} that is worked on in place has no children: they would need a copy",
        "leave out the subplans, or work in a sandbox",
    )
