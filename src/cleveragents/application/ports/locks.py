"""The locks of plans: who works on one, who has left one behind, and how it is taken."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from cleveragents.domain.ids import PlanId


class PlanLocks(Protocol):
    def hold(self, plan_id: PlanId, operation: str) -> AbstractContextManager[None]:
        """Be the plan's only writer, or raise PlanLockedError naming who is."""
        ...

    def stop_owner(self, plan_id: PlanId) -> None:
        """Ask whoever executes the plan in another process to stop, and wait until they have.

        Nothing happens if nobody does. Raises PlanLockedError if they do not let go.
        """
        ...

    def owner(self, plan_id: PlanId) -> str | None:
        """Who is working on the plan now, in words; None if nobody is."""
        ...

    def dead(self) -> Mapping[PlanId, str]:
        """The locks that somebody left behind by dying, with who that was."""
        ...

    def known(self) -> Sequence[PlanId]:
        """The plans that have, or had, a lock."""
        ...

    def forget(self, plan_id: PlanId) -> None:
        """There is no such plan any more: nothing of its lock stays, unless somebody has it."""
        ...
