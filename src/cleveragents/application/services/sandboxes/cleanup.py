"""When the sandboxes of a plan that is over go: never with work that exists nowhere else,
unless somebody asks for just that."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from cleveragents.application.ports.runtime import (
    PlanLocks,
    UnitOfWorkFactory,
)
from cleveragents.application.ports.workspace import Workspace
from cleveragents.application.services.subplans.sandboxes import SubplanSandboxes
from cleveragents.domain.apply import intended
from cleveragents.domain.errors import (
    BaseLostError,
    DeclinedError,
    PlanStateError,
    ProjectMissingError,
    SandboxMissingError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import CleanupPolicy, PlanResource, SandboxStatus

Kept = Mapping[str, str]
"""By resource, where the sandbox is that stays."""


class Discarded(Struct, frozen=True, kw_only=True):
    plan: Plan
    removed: Kept


class SandboxCleanup:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        workspace: Workspace,
        locks: PlanLocks,
        policy: CleanupPolicy,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._sandboxes, self._snapshots = workspace.sandboxes, workspace.snapshots
        self._locks = locks
        self._policy = policy

    def after_apply(self, plan_id: PlanId) -> Kept:
        """What the project has now can go; the caller holds the plan's lock."""
        if self._policy is CleanupPolicy.MANUAL:
            return _places(self._ready(plan_id))
        return self._remove(plan_id, lambda resource: self._holds(resource, only_left_behind=True))

    def after_cancel(self, plan: Plan) -> Kept:
        """What holds no work can go; the caller holds the plan's lock."""
        if self._policy is not CleanupPolicy.ON_TERMINAL or plan.child_of is not None:
            return _places(self._ready(plan.plan_id))
        return self._remove(
            plan.plan_id, lambda resource: self._holds(resource, only_left_behind=False)
        )

    def discard(self, plan_id: PlanId, confirm: Callable[[Kept], bool]) -> Discarded:
        """Remove all that a plan which is over still has, whatever it holds."""
        with self._locks.hold(plan_id, "discard"):
            with self._unit_of_work.reading() as uow:
                plan = uow.plans.get(plan_id)
            if plan.child_of is not None:
                raise PlanStateError(
                    f"plan {plan_id} is a part of plan {plan.child_of.root_id}",
                    f"agents plan discard {plan.child_of.root_id}",
                )
            if not plan.is_final:
                raise PlanStateError(
                    f"plan {plan_id} is not over ({plan.phase}/{plan.state})",
                    f"end it with `agents plan cancel {plan_id}` first",
                )
            removed = _places(self._ready(plan_id))
            if not confirm(removed):
                raise DeclinedError("the discarding")
            self._remove(plan_id, lambda _: False)
            return Discarded(plan=plan, removed=removed)

    def _remove(self, plan_id: PlanId, stays: Callable[[PlanResource], bool]) -> Kept:
        SubplanSandboxes(self._unit_of_work, self._sandboxes).remove_below(plan_id)
        kept: list[PlanResource] = []
        for resource in self._ready(plan_id):
            if stays(resource):
                kept.append(resource)
                continue
            if resource.intent is not None:  # a kill after the apply may have left what it kept
                self._sandboxes.finish(resource, intended(resource.resource_id, resource.intent))
            self._sandboxes.remove(resource)
            with self._unit_of_work() as uow:
                uow.resources.save(resource.removed())
                uow.commit()
        if not kept:
            self._snapshots.forget(plan_id)
        return _places(kept)

    def _holds(self, resource: PlanResource, *, only_left_behind: bool) -> bool:
        """Whether the sandbox has what exists nowhere else; one that is gone has nothing."""
        try:
            self._sandboxes.check(resource)
            diff = self._sandboxes.diff(resource)
        except SandboxMissingError:
            return False
        except (ProjectMissingError, BaseLostError):
            return True  # what cannot be compared may be the only copy
        return bool(diff.left_behind) or (not only_left_behind and bool(diff.files))

    def _ready(self, plan_id: PlanId) -> Sequence[PlanResource]:
        with self._unit_of_work.reading() as uow:
            found = uow.resources.of_plan(plan_id)
        return [resource for resource in found if resource.status is SandboxStatus.READY]


def _places(resources: Sequence[PlanResource]) -> Kept:
    return {resource.name: resource.sandbox_path for resource in resources}
