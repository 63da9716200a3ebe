"""Making a plan from an action, and ending one by hand."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.actors import ActionReader, Actors
from cleveragents.application.ports.runtime import (
    Runtime,
    Sandboxes,
    UnitOfWork,
)
from cleveragents.application.services.checkpoints.held import HeldPlan, descendants
from cleveragents.application.services.plans.resource_survey import inspected
from cleveragents.application.services.plans.timelines import OpenTimeline, OpenTimelines
from cleveragents.application.services.sandboxes.cleanup import SandboxCleanup
from cleveragents.application.services.subplans.sandboxes import children_stopped
from cleveragents.domain.action import Action
from cleveragents.domain.decision import Decision, DecisionType
from cleveragents.domain.errors import PlanError
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.overlaps import cut_out, overlap_notices, refuse_twice
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource, SandboxStatus
from cleveragents.domain.timeline_use import on_a_timeline


class UsedAction(Struct, frozen=True, kw_only=True):
    """A plan that was made, its resources, and what the person should know about them."""

    plan: Plan
    resources: tuple[PlanResource, ...]
    notices: tuple[str, ...]


class CancelledPlan(Struct, frozen=True, kw_only=True):
    """`kept` names the sandboxes that stay because they hold work that was not applied."""

    plan: Plan
    kept: Mapping[str, str]


class PlanService(Struct, frozen=True):
    _runtime: Runtime
    _actions: ActionReader
    _actors: Actors
    _sandboxes: Sandboxes
    _cleanup: SandboxCleanup

    def use(
        self, path: str, overrides: Mapping[str, str], *, include_uncommitted: bool
    ) -> UsedAction:
        """Make a plan of an action file; on any error nothing was created."""
        action = self._actions.read(path, overrides)
        if action.in_place:
            action = on_a_timeline(action, self._runtime.ids.new())
        return self.make(action, include_uncommitted=include_uncommitted)

    def make(self, action: Action, *, include_uncommitted: bool) -> UsedAction:
        """Make a plan, or go on with the timeline of a place; on any error nothing was created."""
        self._actors.check(action)
        going_on = self._open_timeline(action) if action.in_place else None
        if going_on is not None:
            action = action if action.use else going_on.with_databases(action)
            used = self._take_up(going_on.plan.plan_id, action)
            return replace(used, notices=going_on.notices(action))
        plan = Plan(
            plan_id=PlanId(self._runtime.ids.new()),
            action=action,
            created_at=self._runtime.clock.now(),
        )
        resources: list[PlanResource] = []
        notices: list[str] = []
        submodules: dict[str, tuple[str, ...]] = {}
        try:
            for spec in action.resources:
                resource, found = inspected(
                    self._sandboxes,
                    self._runtime.ids,
                    spec,
                    plan.plan_id,
                    include_uncommitted=include_uncommitted,
                )
                resources.append(replace(resource, confinement=action.confinement))
                notices.extend(f"{spec.name}: {notice}" for notice in found.notices)
                submodules[spec.name] = found.submodules
            refuse_twice(resources)
            resources = list(cut_out(resources, submodules))
            notices.extend(overlap_notices(resources))
            self._sandboxes.make_durable(resources)
            plan = self._store(plan, resources)
        except (PlanError, KeyboardInterrupt):
            for resource in resources:
                self._sandboxes.release(resource)
            raise
        return UsedAction(plan=plan, resources=tuple(resources), notices=tuple(notices))

    def _open_timeline(self, action: Action) -> OpenTimeline | None:
        timelines = OpenTimelines(self._runtime.unit_of_work, self._sandboxes)
        return timelines.of(action.resources, by_name=action.use is not None)

    def _take_up(self, plan_id: PlanId, action: Action) -> UsedAction:
        """Let another program, or another action file, work on a timeline that is open."""
        with self._runtime.locks.hold(plan_id, "run"), self._runtime.unit_of_work() as uow:
            plan = uow.plans.get(plan_id)
            plan.refuse_if_applying()
            plan = plan.taken_up(action).tick()
            resources = [
                replace(r, confinement=action.confinement) for r in uow.resources.of_plan(plan_id)
            ]
            uow.resources.save(*resources)
            uow.decisions.add(self._next_program(uow, plan))
            uow.plans.save(plan)
            uow.plans.give_action(plan)
            uow.commit()
        return UsedAction(plan=plan, resources=tuple(resources), notices=())

    def _next_program(self, uow: UnitOfWork, plan: Plan) -> Decision:
        said = "a person has started it on the same timeline"
        root = uow.decisions.of_plan(plan.plan_id)[0]
        decision = plan.definition(DecisionId(self._runtime.ids.new()), said)
        return replace(
            decision,
            type=DecisionType.STRATEGY_CHOICE,
            parent_id=root.decision_id,
            created_at=self._runtime.clock.now(),
        )

    def cancel(self, plan_id: PlanId, reason: str | None = None) -> CancelledPlan:
        """End a plan that is not applied, and its children; their sandboxes stay where they are.

        One that another process executes is stopped there first, as Ctrl-C would.
        """
        self._stop_elsewhere(plan_id)
        with (
            self._runtime.locks.hold(plan_id, "cancel"),
            children_stopped(self._runtime.locks, self._held(plan_id), "cancel"),
        ):
            with self._runtime.unit_of_work() as uow:
                plan = uow.plans.get(plan_id).cancel(self._runtime.clock.now(), _said(reason))
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

    def stop(self, plan_id: PlanId) -> None:
        """If another process executes it, stop that, as Ctrl-C would; it waits to be resumed then.

        Nothing happens if nobody does.
        """
        self._stop_elsewhere(plan_id)
        self._sandboxes.end_running(plan_id)

    def _held(self, plan_id: PlanId) -> HeldPlan:
        with self._runtime.unit_of_work.reading() as uow:
            return HeldPlan.of(uow, plan_id)

    def _stop_elsewhere(self, plan_id: PlanId) -> None:
        with self._runtime.unit_of_work.reading() as uow:
            plan = uow.plans.get(plan_id)
            plan.refuse_if_final()
            below = [child.plan_id for child in descendants(uow, plan_id)]
        if plan.child_of is None or self._runtime.locks.owner(plan.child_of.root_id) is None:
            for running in (plan_id, *below):
                self._runtime.locks.stop_owner(running)

    def _cancel_children(self, uow: UnitOfWork, plan_id: PlanId) -> Sequence[Plan]:
        found = [uow.plans.get(child.plan_id) for child in descendants(uow, plan_id)]
        open_ = [p for p in found if not p.is_final and p.child_of and not p.child_of.settled]
        for plan in open_:
            uow.plans.save(plan.cancel(self._runtime.clock.now()))
        return open_

    def _store(self, plan: Plan, resources: list[PlanResource]) -> Plan:
        plan = plan.tick()
        with self._runtime.unit_of_work() as uow:
            plan = replace(plan, number=uow.plans.next_number(plan))
            uow.plans.add(plan)
            uow.resources.add(*resources)
            said = f"the description of the action {plan.action.name}"
            uow.decisions.add(plan.definition(DecisionId(self._runtime.ids.new()), said))
            uow.commit()
        return plan


def _said(reason: str | None) -> str | None:
    return (reason or "").strip() or None
