"""The timeline of a place: which plan it is, if one is open there."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.in_place import PlaceNotes
from cleveragents.application.ports.runtime import UnitOfWorkFactory
from cleveragents.domain.action import Action, ResourceSpec
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.timeline_use import refuse_other_terms, steps_ahead


class OpenTimeline(Struct, frozen=True, kw_only=True):
    """`unfinished` is how many steps of an action file were still to come on it."""

    plan: Plan
    resources: tuple[PlanResource, ...]
    unfinished: int

    def notices(self, action: Action) -> tuple[str, ...]:
        """What a person should know who goes on with it; whoever runs a program sees where."""
        place = self.resources[0].location
        told = [f"goes on with {self.plan.name}, the timeline of {place}"] if action.use else []
        if self.unfinished:
            steps = "1 step" if self.unfinished == 1 else f"{self.unfinished} steps"
            told.append(
                f"{steps} of what was used there before had not been done, and will not be; it can"
                " be used again"
            )
        return tuple(told)

    def with_databases(self, action: Action) -> Action:
        """A program works with all of the timeline, by the names that they have there."""
        known = [resource for resource in self.resources if not resource.kind.is_folder]
        specs = [
            ResourceSpec(name=r.name, type=r.type, location=r.location, in_place=r.in_place)
            for r in known
        ]
        trees = [spec for spec in action.resources if spec.kind.is_folder]
        return replace(action, resources=(*trees, *specs))


class OpenTimelines(Struct, frozen=True):
    """Of a place there is one, which goes on until somebody closes it (ADR 0100)."""

    _unit_of_work: UnitOfWorkFactory
    _notes: PlaceNotes

    def of(self, wanted: Sequence[ResourceSpec], *, by_name: bool = True) -> OpenTimeline | None:
        """The one that an action with these resources goes on with. Raises TimelineTermsError if it
        asks for more, or for something else, than the timeline is of. A program calls no database
        by its name."""
        tree = next((spec for spec in wanted if spec.in_place and spec.kind.is_folder), None)
        found = None if tree is None else self._open_at(self._notes.place_of(tree.location))
        if found is None:
            return None
        with self._unit_of_work.reading() as uow:
            plan, resources = uow.plans.get(found), uow.resources.of_plan(found)
        real = [replace(spec, location=self._notes.place_of(spec.location)) for spec in wanted]
        refuse_other_terms(plan, resources, real, by_name=by_name)
        ahead = 0 if plan.executed else len(steps_ahead(plan))
        return OpenTimeline(plan=plan, resources=tuple(resources), unfinished=ahead)

    def _open_at(self, place: str) -> PlanId | None:
        noted = self._notes.occupant(place)
        with self._unit_of_work.reading() as uow:
            placed = [plan.plan_id for plan in uow.plans.places() if plan.place == place]
            known = [*uow.plans.starting_with(noted), *placed] if noted else placed
            for plan_id in known:
                is_open = not uow.plans.get(plan_id).is_final
                if is_open and any(r.in_place for r in uow.resources.of_plan(plan_id)):
                    return plan_id
        return None
