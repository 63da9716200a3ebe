"""Which steps of a plan and of its children a person let stand without a check."""

from msgspec import Struct

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.application.services.execute.run_state import done_steps, unchecked_of
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan


class UncheckedStep(Struct, frozen=True, kw_only=True):
    """`child` is the way to the child plan that it is a step of; empty for the plan's own."""

    plan_id: PlanId
    child: str
    step_index: int
    step: str
    decision_id: DecisionId
    why: str


def unchecked_steps(uow: UnitOfWork, plan: Plan, child: str = "") -> tuple[UncheckedStep, ...]:
    """In their order; the result of a child is its parent's, and so is what is unchecked of it."""
    marked = unchecked_of(uow, plan)
    calls = uow.tool_calls.of_plan(plan.plan_id) if marked else ()
    own = [
        UncheckedStep(
            plan_id=plan.plan_id,
            child=child,
            step_index=index,
            step=plan.action.steps[index].name,
            decision_id=decision_id,
            why=marked[decision_id],
        )
        for index, decision_id in sorted(done_steps(uow, plan, calls).items())
        if decision_id in marked and index < len(plan.action.steps)
    ]
    inner = [
        found
        for other in uow.subplans.of_parent(plan.plan_id)
        if other.counts
        for found in unchecked_steps(
            uow, uow.plans.get(other.plan_id), f"{child}/{other.name}" if child else other.name
        )
    ]
    return (*own, *inner)
