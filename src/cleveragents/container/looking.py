"""The wiring of what only looks: which plan is meant, how it stands, and what it would change."""

from functools import cached_property

from cleveragents.container.care import CareWiring


class LookingWiring(CareWiring):
    @cached_property
    def plan_finder(self):
        from cleveragents.application.services.plans.plan_lookup import PlanFinder

        return PlanFinder(self._unit_of_work, self._here)

    @cached_property
    def plan_queries(self):
        from cleveragents.application.services.plans.plan_queries import PlanQueries
        from cleveragents.infrastructure.sandbox.location import SandboxFolders

        places = SandboxFolders(self._in_data_dir("sandboxes"))
        return PlanQueries(self._unit_of_work, self._locks, self._clock, self._here, places)

    @cached_property
    def spoken_names(self):
        from cleveragents.application.services.plans.spoken_names import SpokenNames

        return SpokenNames(self._unit_of_work, self._here)

    @cached_property
    def plan_diff_service(self):
        from cleveragents.application.services.plans.plan_diff_service import PlanDiffService

        return PlanDiffService(self._unit_of_work, self._sandboxes)

    @cached_property
    def step_service(self):
        from cleveragents.application.services.plans.step_service import StepService

        return StepService(self._unit_of_work, self._sandboxes)

    @cached_property
    def _here(self):
        from cleveragents.infrastructure.files.whereabouts import CurrentFolder

        return CurrentFolder(self._cwd)
