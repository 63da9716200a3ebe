"""How child plans look in the status of their parent and in lists."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cleveragents.application.services.subplans.queries import ChildStatus
from cleveragents.cli.render.blocks import Cell, Grid
from cleveragents.cli.views.conflicts import conflict_data
from cleveragents.cli.views.words import picked, state_word, toned
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Plan
from cleveragents.domain.subplan import ChildPlan, MergeOutcome

_INDENT = "  "


def child_data(item: ChildStatus) -> dict[str, Any]:
    child, plan = item.child, item.plan
    data: dict[str, Any] = {
        "plan_id": plan.plan_id,
        "name": child.name,
        "phase": plan.phase,
        "state": plan.state,
        "outcome": standing(child),
        "steps_done": item.steps_done,
        "steps": len(plan.action.steps),
        "retries": child.retries,
        "decision_id": child.decision_id,
        "children": [child_data(inner) for inner in item.children],
    }
    if child.reason:
        data["reason"] = child.reason
    if child.conflicts:
        data["conflicts"] = [conflict_data(conflict) for conflict in child.conflicts]
    if child.losses and child.outcome is MergeOutcome.MERGED:
        data["overwritten"] = [
            picked(loss, "resource path whose lines count") for loss in child.losses
        ]
    return data


def child_grid(children: Sequence[ChildStatus]) -> Grid:
    """Those that still count; the others are in the data."""
    rows = [
        [
            _INDENT * level + item.child.name,
            toned(state_word(item.plan)),
            f"{item.steps_done} of {len(item.plan.action.steps)}",
            toned(standing(item.child)),
            Cell(item.plan.plan_id, "accent"),
        ]
        for level, item in _levels(children)
    ]
    return Grid("Child plans", ["child", "state", "steps", "result", "plan"], rows)


def standing(child: ChildPlan) -> str:
    return "invalidated" if child.invalidated else child.outcome.value


def nested_name(plan: Plan, plans: Mapping[PlanId, Plan]) -> str:
    """A child's name below its parent's in a list, or the action of a plan at the top."""
    if plan.child_of is None:
        return plan.action.name
    level, above = 1, plans.get(plan.child_of.parent_id)
    while above is not None and above.child_of is not None:
        level, above = level + 1, plans.get(above.child_of.parent_id)
    return _INDENT * level + plan.child_of.name


def _levels(children: Sequence[ChildStatus], level: int = 0) -> Iterator[tuple[int, ChildStatus]]:
    for item in children:
        if item.child.counts:
            yield level, item
            yield from _levels(item.children, level + 1)
