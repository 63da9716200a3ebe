"""The wiring of what only looks: which plan is meant, how it stands, and what it would change."""

from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.container.care import CareWiring

if TYPE_CHECKING:
    from cleveragents.application.services.plans.plan_diff_service import PlanDiffService
    from cleveragents.application.services.plans.plan_lookup import PlanFinder
    from cleveragents.application.services.plans.plan_queries import PlanQueries
    from cleveragents.application.services.plans.spoken_names import SpokenNames
    from cleveragents.application.services.plans.step_service import StepService
    from cleveragents.infrastructure.files.whereabouts import CurrentFolder


class LookingWiring(CareWiring):
    @cached_property
    def plan_finder(self) -> "PlanFinder":
        from cleveragents.application.services.plans.plan_lookup import PlanFinder

        return PlanFinder(self._unit_of_work, self._here)

    @cached_property
    def plan_queries(self) -> "PlanQueries":
        from cleveragents.application.services.plans.plan_queries import PlanQueries
        from cleveragents.infrastructure.sandbox.location import SandboxFolders

        places = SandboxFolders(self._in_data_dir("sandboxes"))
        return PlanQueries(self._unit_of_work, self._locks, self._clock, self._here, places)

    @cached_property
    def spoken_names(self) -> "SpokenNames":
        from cleveragents.application.services.plans.spoken_names import SpokenNames
        from cleveragents.infrastructure.files.whereabouts import CurrentFolder

        return SpokenNames(self._unit_of_work, CurrentFolder(self._cwd))

    @cached_property
    def plan_diff_service(self) -> "PlanDiffService":
        from cleveragents.application.services.plans.plan_diff_service import PlanDiffService

        return PlanDiffService(self._unit_of_work, self._sandboxes)

    @cached_property
    def step_service(self) -> "StepService":
        from cleveragents.application.services.plans.step_service import StepService

        return StepService(self._unit_of_work, self._sandboxes)

    @cached_property
    def _here(self) -> "CurrentFolder":
        from cleveragents.infrastructure.files.whereabouts import CurrentFolder

        return CurrentFolder(self._cwd)
