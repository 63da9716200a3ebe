"""What a plan would change in the project, or has changed."""

from cleveragents.application.ports.runtime import Sandboxes, UnitOfWorkFactory
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import CorrectionNotFoundError
from cleveragents.domain.ids import CorrectionId, PlanId
from cleveragents.domain.plan import State
from cleveragents.domain.resource import PlanResource, SandboxStatus


class PlanDiffService:
    def __init__(self, unit_of_work: UnitOfWorkFactory, sandboxes: Sandboxes) -> None:
        self._unit_of_work = unit_of_work
        self._sandboxes = sandboxes

    def diff(self, plan_id: PlanId) -> dict[str, ResourceDiff]:
        """By resource; for an applied plan what was applied, although its sandbox may be gone."""
        with self._unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            resources = uow.resources.of_plan(plan_id)
        if plan.state is State.APPLIED:
            return {
                r.name: self._sandboxes.applied_diff(r, plan.applied[r.name]) for r in resources
            }
        return {resource.name: self._diff_of(resource) for resource in resources}

    def diff_of_correction(
        self, plan_id: PlanId, correction_id: CorrectionId
    ) -> dict[str, ResourceDiff]:
        """By resource, from the state before the correction to the present."""
        with self._unit_of_work.reading() as uow:
            uow.plans.get(plan_id).refuse_if_final()
            correction = uow.corrections.get(correction_id)
            if correction.plan_id != plan_id or correction.safety_group is None:
                raise CorrectionNotFoundError(correction_id)
            before = uow.checkpoints.get(correction.safety_group)
            resources = uow.resources.of_plan(plan_id)
        diffs: dict[str, ResourceDiff] = {}
        for resource in resources:
            state = before.state_of(resource.resource_id)
            if state is not None:
                self._sandboxes.check(resource)
                diffs[resource.name] = self._sandboxes.diff_since(resource, state.snapshot)
        return diffs

    def _diff_of(self, resource: PlanResource) -> ResourceDiff:
        if resource.status is not SandboxStatus.READY:
            return ResourceDiff()
        self._sandboxes.check(resource)
        return self._sandboxes.diff(resource)
