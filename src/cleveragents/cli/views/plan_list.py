"""How the list of plans looks: those of this place first, each with how it stands."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cleveragents.cli.render.blocks import Cell, CommandResult, Grid, Shown
from cleveragents.cli.views.children import nested_name
from cleveragents.cli.views.words import ago, count, picked, size, state_word, toned
from cleveragents.domain.plan import Plan

if TYPE_CHECKING:  # the service behind it is slow to import
    from cleveragents.application.services.plans.plan_queries import PlanList

_NOWHERE = "-"


def listed(found: "PlanList", *, some: bool = False) -> CommandResult:
    """`some`: others were left out, as was asked for. Data has the newest first, as ever."""
    return CommandResult(
        data={
            "plans": [
                {
                    **picked(plan, "plan_id name"),
                    "action": plan.action.name,
                    **picked(plan, "phase state created_at"),
                    "last_checkpoint_id": plan.head,
                    "parent_plan_id": plan.child_of.parent_id if plan.child_of else None,
                    "project": found.project(plan),
                    "latest": plan.plan_id == found.latest,
                }
                for plan in found.plans
            ]
        },
        blocks=[_grid(found, some=some)],
        messages=_latest(found),
    )


def _grid(found: "PlanList", *, some: bool) -> Grid:
    here = [plan for plan in found.plans if _is_here(found, plan)]
    others = [plan for plan in found.plans if not _is_here(found, plan)]
    places = short_places({place for plan in others if (place := found.project(plan))})
    return Grid(
        "Plans",
        ["plan", "what it does", "steps", "state", "made", "size", "place"],
        [_row(found, plan, places) for plan in [*here, *others]],
        empty="no such plan; all of them: agents plan list"
        if some
        else "no plans yet: agents plan use <ACTION.yaml>",
        facts=_where(found, len(here), len(others)),
        cut=("plan", "what it does", "place"),
    )


def _is_here(found: "PlanList", plan: Plan) -> bool:
    return found.here_at is not None and found.project(plan) == found.here_at


def _where(found: "PlanList", here: int, others: int) -> Sequence[Shown]:
    if found.here_at is None or not (here or others):
        return [count(others, "plan")] if others else []
    name = found.here_at.rpartition("/")[2] or found.here_at
    return [f"{here} of {name}", *([f"{others} of other places"] if others else [])]


def _row(found: "PlanList", plan: Plan, places: Mapping[str, str]) -> Sequence[Shown]:
    by_id = {item.plan_id: item for item in found.plans}
    name = plan.name if plan.child_of is None else nested_name(plan, by_id)
    said = " ".join(plan.action.description.split()) or plan.action.name
    steps = len(plan.action.steps)
    done = min(plan.last_completed_step + 1, steps)
    return [
        Cell(name, "accent"),
        said,
        f"{done} of {steps}" if steps else str(plan.last_completed_step + 1),
        toned(state_word(plan, abandoned=plan.plan_id in found.abandoned)),
        ago(plan.created_at, found.now),
        size(found.sizes.get(plan.plan_id, 0)),
        "here" if _is_here(found, plan) else places.get(found.project(plan) or "", _NOWHERE),
    ]


def short_places(places: Collection[str]) -> Mapping[str, str]:
    """Each by as much of its end as tells it from the others."""
    return {place: next(_tails(place, places), place) for place in places}


def _tails(place: str, places: Collection[str]) -> Iterator[str]:
    parts = place.strip("/").split("/")
    for number in range(1, len(parts) + 1):
        tail = "/".join(parts[-number:])
        if sum(other.endswith(f"/{tail}") for other in places) == 1:
            yield tail


def _latest(found: "PlanList") -> Sequence[str]:
    if found.latest:
        latest = next((plan for plan in found.plans if plan.plan_id == found.latest), None)
        return [f"without a name, commands take {latest.name}"] if latest else []
    if not found.projects:
        return []
    return ["no plan was made of the place you are in: names need --any here"]
