"""What plans stand on in the user's projects: followed where it went, and held on to.

A sandbox of a git checkout borrows the objects of the user's repository, and snapshots need those
of the base commit. So this is looked after before any command works on a plan (ADR 0059).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.application.plan_events import tell_recovered
from cleveragents.application.services.checkpoints.held import HeldResources, descendants
from cleveragents.domain.errors import ProjectMissingError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource, SandboxStatus

if TYPE_CHECKING:
    from cleveragents.application.ports.maintenance import MovedProjects
    from cleveragents.application.ports.runtime import Runtime
    from cleveragents.domain.doctor import ProjectMove


class ProjectCare(Struct, frozen=True):
    _runtime: "Runtime"
    _projects: "MovedProjects"

    def attend(self, resources: HeldResources) -> None:
        """Go on with projects that certainly were moved, and keep what the plan needs of each.

        Raises ProjectMissingError or BaseLostError, and nothing has changed then.
        """
        for resource in _needed(resources):
            if not self._projects.is_grounded(resource):
                resources.put(self._follow_for_certain(resource))
        for resource in _needed(resources):
            self._projects.hold(resource)

    def refuse_lost(self, plan_id: PlanId) -> None:
        """Raise BaseLostError if what the plan stands on was removed; nothing is changed."""
        with self._runtime.unit_of_work.reading() as uow:
            resources = uow.resources.of_plan(plan_id)
        for resource in resources:
            is_needed = resource.status is not SandboxStatus.REMOVED
            if is_needed and self._projects.is_grounded(resource):
                self._projects.refuse_lost(resource)

    def strays(
        self, resources: Sequence[PlanResource], moved: Mapping[str, str]
    ) -> Mapping[str, str | None]:
        """By name those whose project is not where it was, each with the place where it seems to
        be; `moved` are folders, old and new."""
        gone = [resource for resource in resources if not self._projects.is_at_home(resource)]
        return {resource.name: self._projects.find(resource, moved) for resource in gone}

    def follow(self, move: "ProjectMove") -> Sequence[PlanResource]:
        """For the plan and all below it. The files of a sandbox first: killed in between, the
        project is found again. The caller holds the plan's lock."""
        with self._runtime.unit_of_work.reading() as uow:
            plans = [move.plan_id, *(c.plan_id for c in descendants(uow, move.plan_id))]
            found = [r for plan_id in plans for r in uow.resources.of_plan(plan_id)]
        moved = [
            self._projects.relocate(resource, move.new)
            for resource in found
            if (resource.name, resource.location) == (move.resource, move.old)
        ]
        with self._runtime.unit_of_work() as uow:
            uow.resources.save(*moved)
            uow.commit()
        return moved

    def _follow_for_certain(self, resource: PlanResource) -> Sequence[PlanResource]:
        name, old = resource.name, resource.location
        place = self._projects.find_for_certain(resource)
        if place is None:
            raise ProjectMissingError(name, old, self._projects.find(resource, {}))
        from cleveragents.domain.doctor import ProjectMove  # noqa: PLC0415 - hardly ever moved

        moved = self.follow(
            ProjectMove(plan_id=resource.plan_id, resource=name, old=old, new=place)
        )
        said = f"the project of `{name}` was moved from {old} to {place}, and is worked on there"
        tell_recovered(self._runtime.events, said)
        return [own for own in moved if own.plan_id == resource.plan_id]


def _needed(resources: HeldResources) -> Sequence[PlanResource]:
    return [r for r in resources.every if r.status is not SandboxStatus.REMOVED]
