"""Making child plans: their rows under the parent's decision, and their sandboxes."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import (
    Runtime,
    UnitOfWork,
    Workspace,
)
from cleveragents.application.services.subplans.sandboxes import SubplanSandboxes
from cleveragents.domain.action import Subplan, Subplans
from cleveragents.domain.decision import Decision
from cleveragents.domain.effects import EffectState
from cleveragents.domain.events import SandboxCreating
from cleveragents.domain.ids import DecisionId, PlanId, ResourceId
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.resource import PlanResource, SandboxStatus
from cleveragents.domain.subplan import ChildPlan, MergeOutcome, current

_NOTHING_LEFT = (EffectState.COMPENSATED, EffectState.SKIPPED)

Origins = Mapping[str, str]
"""By resource, the parent's snapshot before any child of the wave was merged."""


class _Place(Struct, frozen=True, kw_only=True):
    """A child that is to be made; `origins` if it takes the place of another."""

    spec: Subplan
    index: int
    origins: Origins


class SubplanSpawner(Struct, frozen=True):
    _runtime: Runtime
    _workspace: Workspace
    _care: SubplanSandboxes

    def children(
        self,
        plan: Plan,
        decision: Decision,
        subplans: Subplans,
        wanted: Sequence[Subplan],
        *,
        decided: bool = False,
    ) -> tuple[Plan, Sequence[ChildPlan]]:
        """Those that are still to be run or merged; new rows for those that have to begin anew.

        `decided`: a person has said what becomes of conflicts, so that results of children that
        conflict are still wanted.
        """
        order = [child.name for child in subplans.plans]
        found: list[ChildPlan] = []
        over: list[ChildPlan] = []
        with self._runtime.unit_of_work() as uow:
            there = current(uow.subplans.of_parent(plan.plan_id), decision.decision_id)
            for spec in wanted:
                child = there.get(spec.name)
                if child is not None and child.outcome is MergeOutcome.MERGED:
                    over.append(child)
                    continue
                origins: Origins = {}
                if child is not None and _begins_anew(uow, child, decided=decided):
                    uow.subplans.save(child.discarded())
                    over.append(child)
                    mates = [there[one.name] for one in wanted if one.name in there]
                    origins = _origins(uow, [child, *mates])
                    child = None
                if child is None:
                    place = _Place(spec=spec, index=order.index(spec.name), origins=origins)
                    plan, child = self._spawn(uow, plan, decision, place)
                found.append(child)
            uow.plans.save(plan)
            uow.commit()
        for child in over:
            self._care.remove_sandboxes(child.plan_id)
        return plan, found

    def make_sandboxes(self, child: ChildPlan) -> None:
        """From the parent's as they are now, at a step boundary."""
        with self._runtime.unit_of_work.reading() as uow:
            parents = {r.name: r for r in uow.resources.of_plan(child.parent_id)}
            resources = uow.resources.of_plan(child.plan_id)
        pending = [r for r in resources if r.status is SandboxStatus.PENDING]
        if not pending:
            return
        made = [self._make_sandbox(parents[resource.name], resource) for resource in pending]
        self._workspace.sandboxes.make_durable(made)
        with self._runtime.unit_of_work() as uow:
            uow.resources.save(*made)
            uow.commit()

    def _make_sandbox(self, parent: PlanResource, resource: PlanResource) -> PlanResource:
        """The resource as it is to be on record once its sandbox is on the disk."""
        self._runtime.events.emit(SandboxCreating(resource=resource.name))
        base = self._workspace.sandboxes.branch(parent, resource)
        return replace(resource.ready(base.ref), branched_at=parent.boundary)

    def unwatch(self, child: ChildPlan) -> None:
        """Its sandboxes are not looked at for now: watching them all would use up the system's
        watches."""
        with self._runtime.unit_of_work.reading() as uow:
            resources = uow.resources.of_plan(child.plan_id)
        for resource in resources:
            self._workspace.snapshots.release(resource)

    def _spawn(
        self,
        uow: UnitOfWork,
        parent: Plan,
        decision: Decision,
        place: _Place,
    ) -> tuple[Plan, ChildPlan]:
        parent, spec = parent.tick(), place.spec
        now = self._runtime.clock.now()
        action = parent.action.for_child(spec)
        plan = Plan(plan_id=PlanId(self._runtime.ids.new()), action=action, created_at=now).tick()
        root = parent.child_of.root_id if parent.child_of else parent.plan_id
        child = ChildPlan(
            plan_id=plan.plan_id,
            parent_id=parent.plan_id,
            root_id=root,
            decision_id=decision.decision_id,
            name=spec.name,
            index=place.index,
            position=parent.here,
        )
        uow.plans.add(plan)
        uow.subplans.add(child)
        for resource in uow.resources.of_plan(parent.plan_id):
            if resource.name in spec.resources:
                made = self._resource(resource, plan.plan_id, root)
                uow.resources.add(replace(made, origin=place.origins.get(resource.name)))
        uow.decisions.add(
            plan.definition(DecisionId(self._runtime.ids.new()), f"a part of plan {parent.plan_id}")
        )
        return parent, child

    def _resource(self, parent: PlanResource, plan_id: PlanId, root: PlanId) -> PlanResource:
        path = self._workspace.sandboxes.path_for(
            plan_id, parent.name, parent.type, parent.location
        )
        return replace(
            parent.child_of(root),
            resource_id=ResourceId(self._runtime.ids.new()),
            plan_id=plan_id,
            sandbox_path=path,
        )


def _origins(uow: UnitOfWork, children: Iterable[ChildPlan]) -> Origins:
    """Of the first of them that knows: all of a wave were made from the same."""
    found: dict[str, str] = {}
    for child in children:
        for resource in uow.resources.of_plan(child.plan_id):
            start = resource.origin or resource.branched_at
            if start is not None:
                found.setdefault(resource.name, start)
    return found


def _begins_anew(uow: UnitOfWork, child: ChildPlan, *, decided: bool) -> bool:
    """A child that failed or conflicts starts again from what the parent has become since.

    Not if it has reached outside: a new plan would not know of that, and do it once more.
    """
    ended = uow.plans.get(child.plan_id).state in (State.ERRORED, State.CANCELLED)
    if not ended and (decided or child.outcome is not MergeOutcome.CONFLICT):
        return False
    return all(effect.state in _NOTHING_LEFT for effect in uow.effects.of_plan(child.plan_id))
