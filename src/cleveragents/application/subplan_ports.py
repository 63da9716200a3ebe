"""Owns the needs of child plans, as Protocols: their rows, and bringing their results together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.ids import PlanId
from cleveragents.domain.sandbox import PlanResource
from cleveragents.domain.subplan import ChildPlan, Conflict


class SubplanRepository(Protocol):
    def add(self, child: ChildPlan) -> None: ...
    def save(self, child: ChildPlan) -> None: ...
    def get(self, plan_id: PlanId) -> ChildPlan | None:
        """None for a plan that is nobody's child."""
        ...

    def of_parent(self, parent_id: PlanId) -> Sequence[ChildPlan]:
        """Its own children, invalidated ones too, in the order in which they were spawned."""
        ...

    def below(self, root_id: PlanId) -> Sequence[ChildPlan]:
        """All children of a plan at the top, on every level, in the same order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedMerge:
    """What merging one resource of a child would do; nothing has changed yet.

    `kept` are paths that both have and the project ignores: there the parent's stay.
    """

    resource: str
    conflicts: tuple[Conflict, ...] = ()
    kept: tuple[str, ...] = ()
    changes: int = 0


class Merges(Protocol):
    """Brings what a child did to a resource into its parent's sandbox, from their snapshots."""

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge] = (),
    ) -> PreparedMerge:
        """`before` were prepared for the same parent, and will be carried out earlier."""
        ...

    def carry_out(self, parent: PlanResource, child: PlanResource, prepared: PreparedMerge) -> None:
        """Change the parent's sandbox. Killed on the way, it is half done: nothing is recorded."""
        ...
