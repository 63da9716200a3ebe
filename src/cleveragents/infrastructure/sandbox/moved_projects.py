"""Finding projects that were moved: the port `MovedProjects`, each type by what its own tells."""

import os
from collections.abc import Iterator, Mapping

from cleveragents.domain.errors import SandboxError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.registry import ResourceAdapters


class ProjectLocations:
    """`cwd` is looked at too: whoever stands in a repository that was moved shows where it is."""

    def __init__(self, adapters: ResourceAdapters, cwd: str) -> None:
        self._adapters = adapters
        self._cwd = cwd

    def is_at_home(self, resource: PlanResource) -> bool:
        return os.path.lexists(resource.location) and self.is_grounded(resource)

    def is_grounded(self, resource: PlanResource) -> bool:
        return self._adapters.of(resource).location.is_grounded(resource)

    def hold(self, resource: PlanResource) -> None:
        self._adapters.of(resource).location.hold(resource)

    def refuse_lost(self, resource: PlanResource) -> None:
        self._adapters.of(resource).location.refuse_lost(resource)

    def find_for_certain(self, resource: PlanResource) -> str | None:
        location = self._adapters.of(resource).location
        places = {os.path.realpath(place) for place in location.near(resource, self._cwd)}
        found = [place for place in sorted(places) if location.is_surely_at(resource, place)]
        return found[0] if len(found) == 1 else None

    def find(self, resource: PlanResource, told: Mapping[str, str]) -> str | None:
        location = self._adapters.of(resource).location
        for places in (_told(resource, told), location.near(resource, self._cwd)):
            for place in places:
                if location.is_at(resource, place):
                    return place
        return None

    def relocate(self, resource: PlanResource, place: str) -> PlanResource:
        location = self._adapters.of(resource).location
        if not location.is_at(resource, place):
            raise SandboxError(
                f"{place} is not what plan {resource.plan_id} knows as `{resource.name}`",
                f"agents doctor --fix --moved {resource.location}=NEW",
            )
        return location.moved(resource, place)


def _told(resource: PlanResource, told: Mapping[str, str]) -> Iterator[str]:
    for old, new in told.items():
        rest = os.path.relpath(resource.location, old)
        if not rest.startswith(".."):
            yield os.path.normpath(os.path.join(new, rest))
