"""When the sandboxes of a plan that is over go, and what keeps them.

Never with work that exists nowhere else, unless somebody asks for just that.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from cleveragents.application.ports.runtime import Runtime, Workspace
from cleveragents.application.services.checkpoints.held import descendants
from cleveragents.application.services.sandboxes.kept_changes import KeptChanges
from cleveragents.application.services.subplans.sandboxes import SubplanSandboxes
from cleveragents.domain.apply import intended
from cleveragents.domain.errors import (
    BaseLostError,
    PlanError,
    ProjectMissingError,
    SandboxMissingError,
)
from cleveragents.domain.holdings import PlanHoldings
from cleveragents.domain.ids import PlanId
from cleveragents.domain.places import place_of
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.resource import CleanupPolicy, PlanResource, SandboxStatus

Kept = Mapping[str, str]
"""By resource, where the sandbox is that stays."""


class SandboxCleanup(Struct, frozen=True):
    _runtime: Runtime
    _workspace: Workspace
    _policy: CleanupPolicy

    def after_apply(self, plan_id: PlanId, *, keeping: bool) -> Kept:
        """What the project has now can go, `keeping` what the apply can be taken back by; the
        caller holds the plan's lock."""
        if self._policy is CleanupPolicy.MANUAL:
            return _places(self._ready(plan_id))
        return self._remove(
            plan_id,
            lambda resource: self._holds(resource, only_left_behind=True),
            keeping=keeping,
        )

    def after_cancel(self, plan: Plan) -> Kept:
        """What holds no work can go; the caller holds the plan's lock."""
        if self._policy is not CleanupPolicy.ON_TERMINAL or plan.child_of is not None:
            return _places(self._ready(plan.plan_id))
        return self._remove(
            plan.plan_id, lambda resource: self._holds(resource, only_left_behind=False)
        )

    def holdings(self, plan_id: PlanId) -> PlanHoldings:
        """What the plan and its children have, and what would be lost with it; nothing changes."""
        with self._runtime.unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            below = descendants(uow, plan_id)
            children = {child.name: uow.resources.of_plan(child.plan_id) for child in below}
            project = place_of(uow.resources.of_plan(plan_id))
        own = self._ready(plan_id)
        theirs = [(name, r) for name, found in children.items() for r in found if _is_ready(r)]
        lost: dict[str, tuple[str, ...]] = {}
        unknown: dict[str, str] = {}
        for resource in own:
            try:
                lost[resource.name] = self._only_here(resource, plan)
            except (PlanError, OSError) as error:
                unknown[resource.name] = str(error)
        return PlanHoldings(
            plan=plan,
            project=project,
            sandboxes={**_places(own), **{f"{n} {r.name}": r.sandbox_path for n, r in theirs}},
            lost={name: paths for name, paths in lost.items() if paths},
            unknown=unknown,
            owner=self._runtime.locks.owner(plan_id),
        )

    def clear(self, plan_id: PlanId) -> None:
        """Remove all sandboxes and snapshots of a plan that is over, whatever they hold; the caller
        holds the plan's lock. May be repeated. What is kept of its apply goes with them."""
        KeptChanges(self._runtime.unit_of_work, self._workspace).free(plan_id)
        self._remove(plan_id, lambda _: False)

    def _remove(
        self, plan_id: PlanId, stays: Callable[[PlanResource], bool], *, keeping: bool = False
    ) -> Kept:
        SubplanSandboxes(self._runtime.unit_of_work, self._workspace.sandboxes).remove_below(
            plan_id
        )
        kept: list[PlanResource] = []
        for resource in self._ready(plan_id):
            if stays(resource):
                kept.append(resource)
                continue
            self._remove_one(resource, keeping=keeping)
            with self._runtime.unit_of_work() as uow:
                uow.resources.save(resource.removed())
                uow.commit()
        if keeping:
            self._keep_needed(plan_id)
        elif not kept:
            self._workspace.snapshots.forget(plan_id)
        return _places(kept)

    def _remove_one(self, resource: PlanResource, *, keeping: bool) -> None:
        if keeping:
            self._workspace.sandboxes.remove_copy(resource)
            return
        if resource.intent is not None:  # a kill after the apply may have left what it kept
            self._workspace.sandboxes.finish(
                resource, intended(resource.resource_id, resource.intent)
            )
        self._workspace.sandboxes.remove(resource)

    def _keep_needed(self, plan_id: PlanId) -> None:
        """Of the snapshots, those by which the apply can be taken back."""
        with self._runtime.unit_of_work.reading() as uow:
            own = uow.resources.of_plan(plan_id)
            below = [r for c in descendants(uow, plan_id) for r in uow.resources.of_plan(c.plan_id)]
        if not any(resource.intent_needs for resource in own):
            if not any(_is_ready(resource) for resource in own):
                self._workspace.snapshots.forget(plan_id)
            return
        for resource in (*own, *below):
            if resource.base_snapshot is not None and not _is_ready(resource):
                self._workspace.snapshots.keep_only(resource, resource.intent_needs)

    def _holds(self, resource: PlanResource, *, only_left_behind: bool) -> bool:
        """Whether the sandbox has what exists nowhere else; one that is gone has nothing."""
        if resource.in_place:
            return False
        try:
            self._workspace.sandboxes.check(resource)
            if only_left_behind:
                return bool(self._workspace.sandboxes.left_behind(resource))
            diff = self._workspace.sandboxes.diff(resource)
        except SandboxMissingError:
            return False
        except (ProjectMissingError, BaseLostError):
            return True  # what cannot be compared may be the only copy
        return bool(diff.left_behind) or bool(diff.files)

    def _only_here(self, resource: PlanResource, plan: Plan) -> tuple[str, ...]:
        """The files that exist nowhere else; of an applied plan those that apply has left out."""
        if resource.in_place:
            return ()  # they are where they are, and stay there
        try:
            self._workspace.sandboxes.check(resource)
            if plan.state is State.APPLIED:
                return self._workspace.sandboxes.left_behind(resource)
            return self._workspace.sandboxes.only_here(resource)
        except SandboxMissingError:
            return ()

    def _ready(self, plan_id: PlanId) -> Sequence[PlanResource]:
        with self._runtime.unit_of_work.reading() as uow:
            found = uow.resources.of_plan(plan_id)
        return [resource for resource in found if _is_ready(resource)]


def _is_ready(resource: PlanResource) -> bool:
    return resource.status is SandboxStatus.READY


def _places(resources: Sequence[PlanResource]) -> Kept:
    return {resource.name: resource.sandbox_path for resource in resources}
