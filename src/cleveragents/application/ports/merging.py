"""Bringing results together, as Protocols: children's to their parents, plans' into projects."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.conflicts import LeftOut, Side
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import OwnState, PlanResource
from cleveragents.domain.subplan import ChildPlan, Conflict

if TYPE_CHECKING:  # few look at these
    from cleveragents.domain.applied import ApplySide


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


class Applying(Protocol):
    """Brings results back."""

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        """Merge without touching the project. Raises ApplyConflictError or ApplyRefusedError."""
        ...

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        """Change the project; gives back what the result is called there (for git: the commit).

        If it raises, the resource is as it was. What it was is kept until `finish`.
        """
        ...

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        """Make the project what it was before `carry_out`, whether that was reached or not.

        Gives back what the user has changed since, by name: that stays as the user left it.
        """
        ...

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """Let go of what `revert` needs: from now on the project is as it is."""
        ...

    def way_of(self, resource: PlanResource, prepared: PreparedApply) -> OwnState | None:
        """What was carried out and is not finished, as `prepare_move` needs to know it later; None
        if it cannot be taken back then."""
        ...

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """As `finish`, but for what `prepare_move` needs to take it back later."""
        ...

    def kept_bytes(self, resource: PlanResource) -> int:
        """What `settle` has left in the project, on the disk."""
        ...

    def withdraw(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """What `prepare_move` gave was reverted: only what that needed goes."""
        ...

    def prepare_move(
        self, resource: PlanResource, way: OwnState, side: "ApplySide"
    ) -> PreparedApply:
        """From where `way` has led to, to the other side of an apply; `carry_out` and all else then
        work with what this gives back. Nothing of the user's changes, and no sandbox is needed.

        Raises ApplyConflictError, which names what somebody has changed since, or
        ApplyRefusedError.
        """
        ...
