"""How the list of plans looks: each with where it belongs, and which is the latest here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cleveragents.cli.render.blocks import Cell, CommandResult, Grid
from cleveragents.cli.views.children import nested_name
from cleveragents.cli.views.words import clock_time, picked, toned

if TYPE_CHECKING:  # the service behind it is slow to import
    from cleveragents.application.services.plans.plan_queries import PlanList


def listed(found: "PlanList") -> CommandResult:
    plans, by_id = found.plans, {plan.plan_id: plan for plan in found.plans}
    return CommandResult(
        data={
            "plans": [
                {
                    "plan_id": plan.plan_id,
                    "action": plan.action.name,
                    **picked(plan, "phase state created_at"),
                    "last_checkpoint_id": plan.head,
                    "parent_plan_id": plan.child_of.parent_id if plan.child_of else None,
                    "project": found.project(plan),
                    "latest": plan.plan_id == found.latest,
                }
                for plan in plans
            ]
        },
        blocks=[
            Grid(
                "Plans",
                ["plan", "action", "phase", "state", "created", "project"],
                [
                    [
                        Cell(plan.plan_id, "accent"),
                        nested_name(plan, by_id),
                        plan.phase,
                        toned(plan.state),
                        clock_time(plan.created_at),
                        found.project(plan) or "-",
                    ]
                    for plan in plans
                ],
                empty="no plans yet: agents plan use <ACTION.yaml>",
            )
        ],
        messages=_latest(found),
    )


def _latest(found: "PlanList") -> Sequence[str]:
    if found.latest:
        return [f"`latest` is {found.latest} here"]
    if not found.projects:
        return []
    return ["no plan was made of the place you are in: `latest` needs --any here"]
