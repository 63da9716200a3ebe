"""What plans leave in users' repositories, and taking it out again."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.repository.pins import (
    OURS,
    Pins,
    all_pins,
    delete_ref,
)
from cleveragents.infrastructure.sandbox.leftovers import in_repository, repositories_of
from cleveragents.infrastructure.sandbox.workbench import Workbench


class RepositoryTraces:
    """The port PlanTraces. Types without a repository leave nothing."""

    def __init__(self, bench: Workbench) -> None:
        self._pins = Pins(bench.installation)

    def remove(self, resource: PlanResource) -> None:
        for repository in _existing(resource):
            git = in_repository(repository)
            for ref in self._names(git, resource.plan_id):
                delete_ref(git, ref)

    def unreachable(self, resource: PlanResource) -> Sequence[str]:
        return [place for place in _places(resource) if not os.path.isdir(place)]

    def others(self, resources: Collection[PlanResource]) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for repository in sorted({place for r in resources for place in _existing(r)}):
            pins = all_pins(in_repository(repository))
            if number := sum(1 for pin in pins if not self._pins.are(pin)):
                found[repository] = number
        return found

    def _names(self, git: Git, plan_id: PlanId) -> Iterator[str]:
        """Pins of this installation, broken ones too; and the name of what was applied, of which
        there is one for all installations, as there is one plan of this id."""
        pins = [pin for pin in all_pins(git) if pin.plan_id == plan_id and self._pins.are(pin)]
        yield from (pin.ref for pin in pins)
        applied = f"{OURS}applied/{plan_id}/"
        yield from git.text("for-each-ref", "--format=%(refname)", applied).split()


def _existing(resource: PlanResource) -> Iterator[str]:
    return (place for place in _places(resource) if os.path.isdir(place))


def _places(resource: PlanResource) -> Iterator[str]:
    if resource.kind.has_repository:
        yield from repositories_of(resource)
