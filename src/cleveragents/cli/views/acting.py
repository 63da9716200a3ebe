"""What `plan status` says of an actor: what it has used, and what it says about its work."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cleveragents.application.services.plans.plan_queries import PlanStatus
    from cleveragents.application.services.subplans.queries import ChildStatus
    from cleveragents.domain.plan import Plan

_COUNTS = ("requests", "input_tokens", "output_tokens")


def acting_data(found: "PlanStatus") -> Mapping[str, Any]:
    """Nothing for a plan whose steps were written down."""
    used = _used(found)
    data: dict[str, Any] = {} if used is None else {"usage": used}
    summary = found.plan.actor_state.get("summary")
    return {**data, "result": summary} if summary else data


def acting_rows(found: "PlanStatus") -> Iterator[tuple[str, str]]:
    used = _used(found)
    if used is not None:
        read, written = used["input_tokens"], used["output_tokens"]
        cost = "price not known" if used["cost"] is None else f"${used['cost']:.4f}"
        yield "model", f"{used['requests']} requests, {read} + {written} tokens, {cost}"
    summary = found.plan.actor_state.get("summary")
    if summary:
        yield "result", " ".join(str(summary).split())[:500]


def _used(found: "PlanStatus") -> dict[str, Any] | None:
    """By the plan and its children together."""
    plans = [found.plan, *_below(found.children)]
    told = [plan.actor_state["usage"] for plan in plans if plan.actor_state.get("usage")]
    if not told:
        return None
    sums: dict[str, Any] = {name: sum(int(item[name]) for item in told) for name in _COUNTS}
    costs = [item["cost"] for item in told]
    sums["cost"] = None if None in costs else round(sum(costs), 6)
    return sums


def _below(children: "Iterable[ChildStatus]") -> "Iterator[Plan]":
    for child in children:
        yield child.plan
        yield from _below(child.children)
