"""How steps look that a person let stand without a check."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cleveragents.cli.views.words import count, picked
from cleveragents.domain.action import step_number

if TYPE_CHECKING:
    from cleveragents.application.services.rollback.unchecked_steps import UncheckedStep

# More sentences than these nobody reads; the data has all of them.
_MOST_SENTENCES = 3


def data(steps: "Sequence[UncheckedStep]") -> Mapping[str, Any]:
    """The key is there only if a step is."""
    told = [
        {
            "plan_id": item.plan_id,
            "child": item.child or None,
            **picked(item, "step_index step decision_id why"),
        }
        for item in steps
    ]
    return {"unchecked": told} if told else {}


def warnings(steps: "Sequence[UncheckedStep]") -> Sequence[str]:
    """What is not known to hold, and how to find out."""
    if len(steps) > _MOST_SENTENCES:
        return [f"{count(len(steps), 'step')} are unchecked: {', '.join(map(_name, steps))}"]
    return [
        f"step {_name(item)} is unchecked: {item.why}; check it with `agents plan correct"
        f" --mode revert --guidance 'check it' {item.decision_id}`"
        for item in steps
    ]


def although(steps: "Sequence[UncheckedStep]") -> str:
    """For a question that somebody should not answer without knowing."""
    return f", although unchecked: step {', '.join(map(_name, steps))}" if steps else ""


def _name(item: "UncheckedStep") -> str:
    where = f"{item.child}: " if item.child else ""
    return f"{where}{step_number(item.step_index)} ({item.step})"
