"""What is wrong with an action file, and with what it names: all that `plan use` would refuse."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from msgspec import Struct

from cleveragents.application.ports.actors import ActionReader, Actors
from cleveragents.application.ports.runtime import IdSource, Sandboxes, UnitOfWorkFactory
from cleveragents.application.services.plans.resource_survey import inspected
from cleveragents.application.services.plans.timelines import OpenTimelines
from cleveragents.domain.action import Action, ResourceSpec
from cleveragents.domain.errors import (
    InPlaceRefusedError,
    PlaceTakenError,
    PlanError,
    ResourceError,
    TimelineTermsError,
)
from cleveragents.domain.overlaps import cut_out, overlap_notices, refuse_twice
from cleveragents.domain.resource import PlanResource

_Submodules = Mapping[str, tuple[str, ...]]


class CheckedAction(Struct, frozen=True, kw_only=True):
    """Nothing is wrong with it; `notices` are what `plan use` would tell beside that."""

    action: Action
    notices: tuple[str, ...] = ()


class ActionCheck:
    """Is its own `ActionSurvey`; one check at a time."""

    def __init__(
        self,
        actions: ActionReader,
        actors: Actors,
        sandboxes: Sandboxes,
        ids: IdSource,
        unit_of_work: UnitOfWorkFactory,
    ) -> None:
        self._actions = actions
        self._actors = actors
        self._sandboxes = sandboxes
        self._ids = ids
        self._timelines = OpenTimelines(unit_of_work, sandboxes)
        self._notices: list[str] = []

    def check(
        self, path: str, overrides: Mapping[str, str], *, only_file: bool = False
    ) -> CheckedAction:
        """Raises ActionFileError with everything that is wrong; nothing is changed.

        With `only_file`, what the file names is not looked at.
        """
        self._notices = []
        action = self._actions.read(path, overrides, None if only_file else self)
        return CheckedAction(action=action, notices=tuple(self._notices))

    def resource_problems(self, specs: Sequence[ResourceSpec]) -> Sequence[tuple[str, str]]:
        good: list[PlanResource] = []
        submodules: dict[str, tuple[str, ...]] = {}
        problems: list[tuple[str, str]] = []
        for spec in specs:
            try:
                resource, found = inspected(self._sandboxes, self._ids, spec)
                refuse_twice([*good, resource])
            except (ResourceError, InPlaceRefusedError, PlaceTakenError) as error:
                problems.append((spec.name, _told(error)))
                continue
            good.append(resource)
            submodules[spec.name] = found.submodules
            self._notices += [f"{spec.name}: {notice}" for notice in found.notices]
        problems += [*_overlaps(good, submodules), *self._other_terms(specs)]
        if not problems:
            self._notices += overlap_notices(cut_out(good, submodules))
        return problems

    def _other_terms(self, specs: Sequence[ResourceSpec]) -> Iterator[tuple[str, str]]:
        """Of files that work in place: whether they could go on with what is open there."""
        trees = [spec.name for spec in specs if spec.in_place]
        try:
            found = self._timelines.of(specs) if trees else None
        except TimelineTermsError as error:
            yield trees[0], _told(error)
            return
        if found is not None:
            self._notices.append(f"would go on with {found.plan.name}, the timeline of this place")

    def actor_problem(self, action: Action) -> str | None:
        try:
            self._actors.check(action)
        except PlanError as error:
            return _told(error)
        return None


def _overlaps(
    resources: Sequence[PlanResource], submodules: _Submodules
) -> Iterator[tuple[str, str]]:
    for outer, inner in permutations(resources, 2):
        try:
            cut_out([outer, inner], submodules)
        except ResourceError as error:
            if inner.location.startswith(f"{outer.location}/"):
                yield inner.name, _told(error)


def _told(error: PlanError) -> str:
    """On one line, as every mistake of a file is told."""
    text = f"{error.message}; {error.hint}" if error.hint else error.message
    return " ".join(text.split())
