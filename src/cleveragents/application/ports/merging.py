"""The needs of child plans, as Protocols: their rows, and bringing their results together."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.conflicts import LeftOut, Side
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import PlanResource
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


class PreparedMerge(Struct, frozen=True, kw_only=True):
    """What merging one resource of a child would do; nothing has changed yet.

    `kept` are paths that both have and the project ignores: there the parent's stay. `drafts` has
    for paths of `conflicts` that are texts both sides in one, with marks between them. `left_out`
    is what of either side will not be in the result, and `notes` what else people should know.
    """

    resource: str
    conflicts: tuple[Conflict, ...] = ()
    kept: tuple[str, ...] = ()
    changes: int = 0
    drafts: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()


Decide = Callable[[Conflict], Side | bytes | None]
"""What a person has decided about exactly this conflict, if anything."""


def undecided(conflict: Conflict) -> Side | bytes | None:  # noqa: ARG001 - whatever it is
    return None


class Merges(Protocol):
    """Brings what a child did to a resource into its parent's sandbox, from their snapshots."""

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge] = (),
        decide: Decide = undecided,
    ) -> PreparedMerge:
        """`before` were prepared for the same parent, and will be carried out earlier."""
        ...

    def carry_out(self, parent: PlanResource, child: PlanResource, prepared: PreparedMerge) -> None:
        """Change the parent's sandbox. Killed on the way, it is half done: nothing is recorded."""
        ...
