"""Making a plan from an action, and ending one by hand."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.actors import Actors
from cleveragents.application.ports.runtime import (
    ActionReader,
    PlanLocks,
    Sandboxes,
    UnitOfWork,
    UnitOfWorkFactory,
)
from cleveragents.application.ports.workspace import Runtime
from cleveragents.application.services.checkpoints.held import HeldPlan, descendants
from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
from cleveragents.application.services.subplans.sandboxes import children_stopped
from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.errors import PlanError, ResourceError
from cleveragents.domain.ids import DecisionId, PlanId, ResourceId
from cleveragents.domain.overlaps import cut_out, overlap_notices
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource, SandboxStatus


class UsedAction(Struct, frozen=True, kw_only=True):
    """A plan that was made, its resources, and what the person should know about them."""

    plan: Plan
    resources: tuple[PlanResource, ...]
    notices: tuple[str, ...]


class CancelledPlan(Struct, frozen=True, kw_only=True):
    """`kept` names the sandboxes that stay because they hold work that was not applied."""

    plan: Plan
    kept: Mapping[str, str]


class PlanService:
    def __init__(
        self,
        unit_of_work: UnitOfWorkFactory,
        actions: ActionReader,
        actors: Actors,
        sandboxes: Sandboxes,
        locks: PlanLocks,
        runtime: Runtime,
        cleanup: SandboxCleanup,
    ) -> None:
        self._unit_of_work = unit_of_work
        self._actions = actions
        self._actors = actors
        self._sandboxes = sandboxes
        self._locks = locks
        self._clock, self._ids = runtime.clock, runtime.ids
        self._cleanup = cleanup

    def use(
        self, path: str, overrides: Mapping[str, str], *, include_uncommitted: bool
    ) -> UsedAction:
        """Make a plan; on any error nothing was created."""
        action = self._actions.read(path, overrides)
        self._actors.check(action)
        plan = Plan(plan_id=PlanId(self._ids.new()), action=action, created_at=self._clock.now())
        resources: list[PlanResource] = []
        notices: list[str] = []
        try:
            for spec in action.resources:
                resource, said = self._inspect(
                    plan.plan_id, spec, include_uncommitted=include_uncommitted
                )
                resources.append(replace(resource, confinement=action.confinement))
                notices.extend(said)
            _refuse_twice_the_same(resources)
            resources = list(cut_out(resources))
            notices.extend(overlap_notices(resources))
            self._sandboxes.make_durable(resources)
            plan = self._store(plan, resources)
        except (PlanError, KeyboardInterrupt):
            for resource in resources:
                self._sandboxes.release(resource)
            raise
        return UsedAction(plan=plan, resources=tuple(resources), notices=tuple(notices))

    def cancel(self, plan_id: PlanId) -> CancelledPlan:
        """End a plan that is not applied, and its children; their sandboxes stay where they are.

        One that another process executes is stopped there first, as Ctrl-C would.
        """
        self._stop_elsewhere(plan_id)
        with (
            self._locks.hold(plan_id, "cancel"),
            children_stopped(self._locks, self._held(plan_id), "cancel"),
        ):
            with self._unit_of_work() as uow:
                plan = uow.plans.get(plan_id).cancel(self._clock.now())
                resources = {r.name: r for r in uow.resources.of_plan(plan_id)}
                # Children first: they are over with the plan at the top.
                for child in self._cancel_children(uow, plan_id):
                    found = uow.resources.of_plan(child.plan_id)
                    resources |= {f"{child.action.name} {r.name}": r for r in found}
                uow.plans.save(plan)
                uow.commit()
            for resource in resources.values():
                if resource.status is SandboxStatus.PENDING and resource.plan_id == plan_id:
                    self._sandboxes.release(resource)
            ready = {n: r for n, r in resources.items() if r.status is SandboxStatus.READY}
            kept = {n: r.sandbox_path for n, r in ready.items()}
            if all(resource.plan_id == plan_id for resource in ready.values()):
                # Children share its snapshots, and so keep its sandboxes with their own.
                kept = self._cleanup.after_cancel(plan)
        return CancelledPlan(plan=plan, kept=kept)

    def _held(self, plan_id: PlanId) -> HeldPlan:
        with self._unit_of_work.reading() as uow:
            return HeldPlan.of(uow, plan_id)

    def _stop_elsewhere(self, plan_id: PlanId) -> None:
        with self._unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            plan.refuse_if_final()
            below = [child.plan_id for child in descendants(uow, plan_id)]
        if plan.child_of is None or self._locks.owner(plan.child_of.root_id) is None:
            for running in (plan_id, *below):
                self._locks.stop_owner(running)

    def _cancel_children(self, uow: UnitOfWork, plan_id: PlanId) -> Sequence[Plan]:
        found = [uow.plans.get(child.plan_id) for child in descendants(uow, plan_id)]
        open_ = [p for p in found if not p.is_final and p.child_of and not p.child_of.settled]
        for plan in open_:
            uow.plans.save(plan.cancel(self._clock.now()))
        return open_

    def _inspect(
        self, plan_id: PlanId, spec: ResourceSpec, *, include_uncommitted: bool
    ) -> tuple[PlanResource, tuple[str, ...]]:
        _refuse_unstorable(spec)
        found = self._sandboxes.inspect(spec, plan_id, include_uncommitted=include_uncommitted)
        resource = PlanResource(
            resource_id=ResourceId(self._ids.new()),
            plan_id=plan_id,
            name=spec.name,
            type=spec.type,
            location=found.location,
            base=found.base,
            sandbox_path=self._sandboxes.path_for(plan_id, spec.name, spec.type, found.location),
            include=spec.include,
            exclude=spec.exclude,
            checkpointable=spec.checkpointable,
            details=found.details,
        )
        return resource, tuple(f"{spec.name}: {notice}" for notice in found.notices)

    def _store(self, plan: Plan, resources: list[PlanResource]) -> Plan:
        plan = plan.tick()
        with self._unit_of_work() as uow:
            uow.plans.add(plan)
            for resource in resources:
                uow.resources.add(resource)
            said = f"the description of the action {plan.action.name}"
            uow.decisions.add(plan.definition(DecisionId(self._ids.new()), said))
            uow.commit()
        return plan


def _refuse_twice_the_same(resources: Sequence[PlanResource]) -> None:
    # Two sandboxes of one thing could not both be applied: the second would undo the first.
    seen: dict[str, str] = {}
    for resource in resources:
        other = seen.setdefault(resource.location, resource.name)
        if other != resource.name:
            raise ResourceError(
                f"`{other}` and `{resource.name}` are the same: {resource.location}",
                "name it once, and let all steps use that resource",
            )


def _refuse_unstorable(spec: ResourceSpec) -> None:
    try:
        spec.location.encode("utf-8")
    except UnicodeEncodeError:
        raise ResourceError(
            f"the path of `{spec.name}` is not UTF-8",
            "rename the folder, or reach it through a link with a plain name",
        ) from None
