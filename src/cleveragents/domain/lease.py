"""Who may write the records of a plan: whoever raised its lease epoch last (ADR 0076)."""

from collections.abc import Mapping

from cleveragents.domain.errors import PlanOvertakenError
from cleveragents.domain.ids import PlanId


class PlanNotHeldError(RuntimeError):
    """A plan is written by a process that took no lock for it: a mistake of this program."""

    def __init__(self, plan_id: PlanId) -> None:
        super().__init__(f"plan {plan_id} is written without its lock")


def refuse_overtaken(
    plan_id: PlanId, stored: Mapping[PlanId, int], held: Mapping[PlanId, int | None]
) -> None:
    """`stored`: the epochs on record of the plan and of all above it; `held`: those we raised.

    Whoever holds a plan writes its children as well. Each lease of the line that was ours has to be
    ours still: a child of a plan that somebody else goes on with is theirs too. Raises
    PlanOvertakenError, or PlanNotHeldError if none of them ever was.
    """
    ours = [above for above in stored if held.get(above) is not None]
    for above in ours:
        if stored[above] != held[above]:
            raise PlanOvertakenError(above)
    if not ours:
        raise PlanNotHeldError(plan_id)
