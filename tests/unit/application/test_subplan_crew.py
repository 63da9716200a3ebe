"""The crew: what becomes of a child that cannot even begin, or that somebody else works on."""

from typing import Any

import pytest
from fake_actors import MemoryTools
from fake_database import MemoryDatabase
from fake_sandboxes import MemoryDisk
from fakes import EventLog, Faults
from msgspec.structs import replace

from cleveragents.application.plan_events import PlanEvents
from cleveragents.application.services.subplans.runner import SubplanRunner
from cleveragents.domain.action import Action, Subplans
from cleveragents.domain.decision import Position
from cleveragents.domain.effects import EffectChoice
from cleveragents.domain.errors import PlanError, PlanLockedError, SandboxError
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.subplan import ChildPlan
from cleveragents.infrastructure.clock import SystemClock, UlidSource

STOP = EffectChoice.STOP
IDS, NOW = UlidSource(), SystemClock().now()


class Sandboxes:
    """Stands for the spawner: makes sandboxes, or says why not."""

    def __init__(self, error: PlanError | None = None) -> None:
        self.error = error
        self.tries = 0

    def make_sandboxes(self, child: ChildPlan) -> None:
        self.tries += 1
        if self.error is not None:
            raise self.error

    def unwatch(self, child: ChildPlan) -> None:
        """Nothing is watched."""


class Family:
    def __init__(self, **parts: Any) -> None:
        self.database = MemoryDatabase(Faults())
        action = Action(name="a", description="d", resources=(), steps=())
        self.parent = Plan(plan_id=PlanId(IDS.new()), action=action, created_at=NOW)
        plan = Plan(plan_id=PlanId(IDS.new()), action=action, created_at=NOW)
        self.child = ChildPlan(
            plan_id=plan.plan_id,
            parent_id=self.parent.plan_id,
            root_id=self.parent.plan_id,
            decision_id=DecisionId(IDS.new()),
            name="en",
            index=0,
            position=Position(timeline=0, seq=1),
        )
        with self.database() as uow:
            uow.plans.add(self.parent)
            uow.plans.add(plan)
            uow.subplans.add(self.child)
            uow.commit()
        self.sandboxes = Sandboxes(parts.get("error"))
        self.crew = SubplanRunner(
            self.database,
            self.sandboxes,  # pyright: ignore[reportArgumentType]
            parts.get("rollbacks"),  # pyright: ignore[reportArgumentType]
            MemoryTools(MemoryDisk(), Faults()),
            parts.get("run_plan", self.complete),
            PlanEvents(EventLog()),
        )

    def complete(self, plan_id: PlanId, choice: EffectChoice = STOP) -> Plan:
        with self.database() as uow:
            plan = uow.plans.get(plan_id)
            if plan.executed:
                return plan
            plan = plan.start(NOW).complete(NOW)
            uow.plans.save(plan)
            uow.commit()
        return plan

    def run(self, **keys: Any) -> None:
        self.crew.run(self.parent, [self.child], Subplans(plans=(), **keys), STOP)

    @property
    def plan(self) -> Plan:
        return self.database.tables.plans[self.child.plan_id]


def test_a_child_without_a_sandbox_is_tried_again_and_then_errored() -> None:
    family = Family(error=SandboxError("no room", "make some"))
    family.run(max_retries=2)
    assert family.sandboxes.tries == 3
    assert family.plan.state is State.ERRORED
    assert family.plan.error is not None
    assert family.plan.error.message == "no room"
    assert family.database.tables.children[family.child.plan_id].retries == 2


def test_a_child_that_somebody_else_works_on_is_left_alone() -> None:
    family = Family(error=PlanLockedError("x", "another"))
    with pytest.raises(PlanLockedError):
        family.run()
    assert family.plan.state is State.QUEUED


def test_a_bug_in_a_child_is_not_hidden() -> None:
    def broken(plan_id: PlanId, choice: EffectChoice) -> Plan:
        raise RuntimeError(plan_id)

    with pytest.raises(RuntimeError):
        Family(run_plan=broken).run()


def test_a_child_that_is_done_is_not_run_again() -> None:
    family = Family()
    family.run()
    family.run()
    assert family.sandboxes.tries == 1


def test_nothing_to_run_is_nothing() -> None:
    family = Family()
    family.crew.run(family.parent, [], Subplans(plans=()), STOP)
    assert family.sandboxes.tries == 0


def test_a_plan_that_is_stopped_says_so_when_its_children_have() -> None:
    family = Family()

    def stopped(plan_id: PlanId, choice: EffectChoice) -> Plan:
        family.crew.stop(family.parent.plan_id)
        return replace(family.plan, state=State.QUEUED)

    family.crew._run_plan = stopped
    with pytest.raises(KeyboardInterrupt):
        family.run()
