"""Where a plan belongs: the repository or folder of its first resource (ADR 0044)."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import ResourceType, kind_of


class PlacedPlan(Struct, frozen=True, kw_only=True):
    """A plan that a person has made; without a place if none of its resources is on this disk."""

    plan_id: PlanId
    action: str
    place: str | None
    number: int = 0

    @property
    def name(self) -> str:
        return plan_name(self.action, self.number)


def plan_name(action: str, number: int) -> str:
    return f"{action}-{number}"


def place_of(resources: Iterable[PlanResource]) -> str | None:
    """Of a plan's resources in their order."""
    return next((folder_of(r.type, r.location) for r in resources), None)


def folder_of(type_: ResourceType, location: str) -> str | None:
    """Of one resource; a file belongs to the folder it is in, what is on a server to none."""
    kind = kind_of(type_)
    if kind.key == "url":
        return None
    return location if kind.is_folder else location.rpartition("/")[0] or "/"


def latest_of(plans: Sequence[PlacedPlan], around: Iterable[str]) -> PlacedPlan | None:
    """Of the innermost folder that has plans; `plans` has the last one made first."""
    for folder in around:
        found = next((plan for plan in plans if plan.place == folder), None)
        if found is not None:
            return found
    return None
