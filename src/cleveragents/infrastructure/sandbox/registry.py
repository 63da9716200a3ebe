"""The types of resources there are, each with the adapter that its folder makes: one line each."""

import threading
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.errors import ResourceError
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import ResourceKind, ResourceType, add_kind
from cleveragents.infrastructure.sandbox.adapter import ResourceAdapter
from cleveragents.infrastructure.sandbox.folder.adapter import FolderAdapter
from cleveragents.infrastructure.sandbox.git.adapter import GitAdapter
from cleveragents.infrastructure.sandbox.sqlite.adapter import SqliteAdapter
from cleveragents.infrastructure.sandbox.workbench import Workbench

if TYPE_CHECKING:
    from cleveragents.infrastructure.sandbox.in_place.adapter import InPlaceAdapter
    from cleveragents.infrastructure.sandbox.in_place.databases.adapter import (
        InPlaceDatabaseAdapter,
    )
    from cleveragents.infrastructure.sandbox.in_place.databases.engine import InPlacePages
    from cleveragents.infrastructure.sandbox.in_place.engine import InPlaceEngine

AdapterMaker = Callable[[Workbench], ResourceAdapter]

_MAKERS: dict[ResourceType, AdapterMaker] = {
    GitAdapter.kind.type: GitAdapter,
    FolderAdapter.kind.type: FolderAdapter,
    SqliteAdapter.kind.type: SqliteAdapter,
}


def register(kind: ResourceKind, maker: AdapterMaker) -> None:
    """Bring a type of one's own, before anything works with resources."""
    add_kind(kind)
    _MAKERS[kind.type] = maker


class ResourceAdapters:
    """One adapter of each type, made when it is first asked for."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self._made: dict[ResourceType, ResourceAdapter] = {}
        self._in_place: dict[ResourceType, InPlaceAdapter | InPlaceDatabaseAdapter] = {}
        self._making = threading.Lock()

    def of(self, resource: PlanResource) -> ResourceAdapter:
        if resource.in_place:
            return self._made_in_place(resource.name, resource.type)
        return self.named(resource.name, resource.type)

    def for_spec(self, spec: ResourceSpec) -> ResourceAdapter:
        if spec.in_place:
            return self._made_in_place(spec.name, spec.type)
        return self.named(spec.name, spec.type)

    def in_place(self, resource: PlanResource) -> "InPlaceEngine | InPlacePages":
        """The snapshots of one that is worked on in place."""
        return self._made_in_place(resource.name, resource.type).snapshots

    def _made_in_place(
        self, name: str, type_: ResourceType
    ) -> "InPlaceAdapter | InPlaceDatabaseAdapter":
        """Raises ResourceError for a type that stays where it is only in a sandbox."""
        kind = self.named(name, type_).kind
        with self._making:
            if type_ not in self._in_place:
                self._in_place[type_] = _in_place(name, kind, self.bench)
                _ = self._in_place[type_].snapshots
            return self._in_place[type_]

    def named(self, name: str, type_: ResourceType) -> ResourceAdapter:
        """Raises ResourceError for a type that can be named, but not worked on."""
        if type_ not in _MAKERS:
            raise ResourceError(
                f"`{name}` is of type {type_}, which is not implemented yet",
                f"use a resource of a type that works: {', '.join(_MAKERS)}",
            )
        with self._making:
            return self._made.get(type_) or self._make(type_)

    def all(self) -> Iterator[ResourceAdapter]:
        return chain((self.named(type_, type_) for type_ in _MAKERS), self._in_place.values())

    def _make(self, type_: ResourceType) -> ResourceAdapter:
        adapter = self._made[type_] = _MAKERS[type_](self.bench)
        # Here, alone: two engines of one type would remember different things of one sandbox.
        _ = adapter.snapshots
        return adapter


def _in_place(
    name: str, kind: ResourceKind, bench: Workbench
) -> "InPlaceAdapter | InPlaceDatabaseAdapter":
    """Who works in sandboxes loads none of this."""
    if kind.type == SqliteAdapter.kind.type:
        from cleveragents.infrastructure.sandbox.in_place.databases.adapter import (  # noqa: PLC0415
            InPlaceDatabaseAdapter,
        )

        return InPlaceDatabaseAdapter(kind, bench)
    if kind.type not in (GitAdapter.kind.type, FolderAdapter.kind.type):
        raise ResourceError(
            f"`{name}` is of type {kind.type}, which is not worked on in place yet",
            "leave it out, or work in a sandbox",
        )
    from cleveragents.infrastructure.sandbox.in_place.adapter import (  # noqa: PLC0415
        InPlaceAdapter,
    )

    return InPlaceAdapter(kind, bench)
