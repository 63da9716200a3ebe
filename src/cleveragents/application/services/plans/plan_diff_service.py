"""What a plan would change in the project, or has changed."""

from msgspec import Struct

from cleveragents.application.ports.runtime import Sandboxes, UnitOfWorkFactory
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import CorrectionNotFoundError
from cleveragents.domain.ids import PlanId, id_part
from cleveragents.domain.plan import State
from cleveragents.domain.resource import PlanResource, SandboxStatus


class CorrectionDiff(Struct, frozen=True, kw_only=True):
    """Of the plan that was corrected, by resource."""

    plan_id: PlanId
    diffs: dict[str, ResourceDiff]


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

    def diff_of_correction(self, wanted: str, plan_id: PlanId | None = None) -> CorrectionDiff:
        """By resource, from the state before the correction to the present. It is named by its id,
        or by four letters or more of its beginning or ending.

        Raises CorrectionNotFoundError, also for one of another plan than this.
        """
        part = id_part(wanted)
        with self._unit_of_work.reading() as uow:
            found = uow.corrections.with_part(part) if part else ()
            mine = [item for item in found if plan_id in (None, item.plan_id)]
            correction = mine[0] if len(mine) == 1 else None
            if correction is None or correction.safety_group is None:
                raise CorrectionNotFoundError(wanted)
            plan_id = correction.plan_id
            uow.plans.get(plan_id).refuse_if_final()
            before = uow.checkpoints.get(correction.safety_group)
            resources = uow.resources.of_plan(plan_id)
        diffs: dict[str, ResourceDiff] = {}
        for resource in resources:
            state = before.state_of(resource.resource_id)
            if state is not None:
                self._sandboxes.check(resource)
                diffs[resource.name] = self._sandboxes.diff_since(resource, state.snapshot)
        return CorrectionDiff(plan_id=plan_id, diffs=diffs)

    def _diff_of(self, resource: PlanResource) -> ResourceDiff:
        if resource.status is not SandboxStatus.READY:
            return ResourceDiff()
        self._sandboxes.check(resource)
        return self._sandboxes.diff(resource)
