"""Which steps of a plan and of its children a person let stand without a check."""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.services.execute.run_state import (
    deeds_of,
    done_steps,
    successes,
    unchecked_of,
)
from cleveragents.domain.correction import Unchecked
from cleveragents.domain.footprint import NO_REACH, Footprint, StepWrites, Touched, Writers, doubt
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.selection import Selection

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import UnitOfWork


class UncheckedStep(Struct, frozen=True, kw_only=True):
    """`child` is the way to the child plan that it is a step of; empty for the plan's own."""

    plan_id: PlanId
    child: str
    step_index: int
    step: str
    decision_id: DecisionId
    why: str


def unchecked_steps(uow: "UnitOfWork", plan: Plan, child: str = "") -> tuple[UncheckedStep, ...]:
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


class BroughtBack(Struct, frozen=True, kw_only=True):
    """Files that came back, and from where, in words."""

    files: Selection
    why: str


def let_stand(uow: "UnitOfWork", plan: Plan, restored: BroughtBack) -> None:
    """No step is done again for it, so those that may have used these files are unchecked."""
    touched = _touched(restored.files)
    calls = successes(uow.tool_calls.of_plan(plan.plan_id))
    done = set(done_steps(uow, plan, calls).values())
    deeds = deeds_of(calls)
    uow.corrections.let_stand(
        plan.plan_id,
        [
            Unchecked(decision_id=decision_id, position=plan.here, why=restored.why)
            for decision_id, deed in deeds.items()
            if decision_id in done and _may_have_used(deed, touched)
        ],
    )


def _touched(selection: Selection) -> Touched:
    return {
        name: Footprint(paths=frozenset(paths), whole=not paths)
        for name, paths in selection.paths.items()
    }


def _may_have_used(deed: StepWrites, touched: Touched) -> bool:
    brought = replace(deed, touched=touched, reach=NO_REACH)
    if doubt(deed.reach, brought) is not None:
        return True
    return bool(Writers([brought]).behind(deed.touched, deed.reach))
