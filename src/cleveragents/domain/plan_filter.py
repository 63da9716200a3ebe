"""Which plans of a list a person wants to see."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from cleveragents.domain.plan import Phase, Plan, State


class PlanFilter(Struct, frozen=True, kw_only=True):
    """What is empty or None asks for nothing; `since` is about when a plan was made."""

    phases: Collection[Phase] = ()
    states: Collection[State] = ()
    actions: Collection[str] = ()
    since: datetime | None = None

    def admits(self, plan: Plan) -> bool:
        return (
            (not self.phases or plan.phase in self.phases)
            and (not self.states or plan.state in self.states)
            and (not self.actions or plan.action.name in self.actions)
            and (self.since is None or plan.created_at >= self.since)
        )


EVERY_PLAN = PlanFilter()
