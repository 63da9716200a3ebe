"""Child plans: how each belongs to its parent, in which order they run, what came of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.action import Subplan, Subplans
from cleveragents.domain.conflicts import Hunk, Loss
from cleveragents.domain.decision import Position, is_live
from cleveragents.domain.errors import ChildSettledError
from cleveragents.domain.ids import DecisionId, PlanId

MOST_LEVELS = 8
"""How deep child plans may be nested, the plan at the top not counted."""


class MergeOutcome(StrEnum):
    """What became of a child's result in its parent."""

    PENDING = "pending"
    MERGED = "merged"
    CONFLICT = "conflict"
    FAILED = "failed"
    DISCARDED = "discarded"


class ConflictKind(StrEnum):
    """Why a path could not be merged."""

    CONTENT = "content"
    DELETE = "delete"
    CREATE = "create"
    RENAME = "rename"
    BINARY = "binary"
    DATABASE = "database"
    SUBMODULE = "submodule"
    OVERWRITE = "overwrite"


class Conflict(Struct, frozen=True, kw_only=True):
    """One path that a child and somebody before it both changed; `path` is text for people.

    `ours` and `theirs` say what each side made of it, `hunks` where the lines of a text differ, of
    `more` only that there are so many. `ours_by` is who had changed it before. `key` is the same as
    long as both sides are: what a person decides is about these and no others.
    """

    resource: str
    path: str
    kind: ConflictKind
    ours: str = ""
    theirs: str = ""
    ours_by: str = ""
    hunks: tuple[Hunk, ...] = ()
    more: int = 0
    editable: bool = False
    key: str = ""

    def is_as(self, other: "Conflict") -> bool:
        """Whether it is the same dispute over the same contents."""
        mine = (self.resource, self.path, self.kind, self.key)
        return mine == (other.resource, other.path, other.kind, other.key)

    def __str__(self) -> str:
        return f"{self.resource}:{self.path} ({self.kind})"


class ChildPlan(Struct, frozen=True, kw_only=True):
    """A plan's place under its parent: one row per child, never deleted.

    `position` is where in the parent's history it was spawned, `merges` are the places where its
    result was merged: after a rollback of the parent one of them counts, or none. `losses` is what
    its last merge left out.
    """

    plan_id: PlanId
    parent_id: PlanId
    root_id: PlanId
    decision_id: DecisionId
    name: str
    index: int
    position: Position
    outcome: MergeOutcome = MergeOutcome.PENDING
    invalidated: bool = False
    retries: int = 0
    reason: str = ""
    conflicts: tuple[Conflict, ...] = ()
    merges: tuple[Position, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it still is the child of this name of its parent."""
        return not self.invalidated and self.outcome is not MergeOutcome.DISCARDED

    def merged_at(self, here: Position) -> "ChildPlan":
        return replace(
            self,
            outcome=MergeOutcome.MERGED,
            reason="",
            conflicts=(),
            merges=(*self.merges, here),
        )

    def failed(self, reason: str) -> "ChildPlan":
        return replace(self, outcome=MergeOutcome.FAILED, reason=reason, conflicts=())

    def conflicting(self, conflicts: Iterable[Conflict], reason: str) -> "ChildPlan":
        found = tuple(conflicts)
        return replace(self, outcome=MergeOutcome.CONFLICT, reason=reason, conflicts=found)

    def discarded(self) -> "ChildPlan":
        return replace(self, outcome=MergeOutcome.DISCARDED)

    def waiting(self) -> "ChildPlan":
        """Its result is there, or will be, and is still to be merged."""
        return replace(self, outcome=MergeOutcome.PENDING, reason="", conflicts=())

    def taken_back(self) -> "ChildPlan":
        """Its last merge counts no more; it can be merged again."""
        return replace(self.waiting(), merges=self.merges[:-1])

    def retried(self) -> "ChildPlan":
        return replace(self.waiting(), retries=self.retries + 1)

    def on_line(self, reach: Mapping[int, int | None], *, replaced: bool = False) -> "ChildPlan":
        """The same child, seen from the line of the parent's history that counts now.

        `replaced` says that a correction took the place of the decision to spawn it.
        """
        seen = replace(self, invalidated=replaced or not is_live(self.position, reach))
        if any(is_live(position, reach) for position in self.merges):
            return replace(seen, outcome=MergeOutcome.MERGED)
        if self.outcome is MergeOutcome.MERGED:
            return seen.waiting()
        return seen


class ChildOf(Struct, frozen=True, kw_only=True):
    """What a plan knows of its parent, which is called `above`. `invalidated` says that a rollback
    took it back, there or further up, `over` that the plan at the top is applied or cancelled."""

    parent_id: PlanId
    root_id: PlanId
    name: str
    outcome: MergeOutcome
    invalidated: bool
    over: bool = False
    above: str = ""

    @property
    def settled(self) -> bool:
        done = self.outcome in (MergeOutcome.MERGED, MergeOutcome.DISCARDED)
        return done or self.invalidated or self.over

    def refuse_if_settled(self, plan_id: PlanId) -> None:
        """Nothing more can be done to a child whose result is in its parent, or is not wanted."""
        if self.invalidated:
            raise ChildSettledError(plan_id, self.name, self.parent_id, "was taken back with")
        if self.outcome is MergeOutcome.MERGED:
            raise ChildSettledError(plan_id, self.name, self.parent_id, "is merged into")
        if self.outcome is MergeOutcome.DISCARDED:
            raise ChildSettledError(plan_id, self.name, self.parent_id, "was replaced in")
        if self.over:
            raise ChildSettledError(plan_id, self.name, self.root_id, "ended with")


def waves(subplans: Subplans) -> Sequence[Sequence[Subplan]]:
    """Children that may run side by side, each wave on top of what the ones before it merged.

    A fixed order, whoever is done first: the same children always give the same result.
    """
    done: set[str] = set()
    left = list(subplans.plans)
    found: list[Sequence[Subplan]] = []
    while left:
        ready = [child for child in left if done.issuperset(child.depends_on)]
        if not ready:
            raise ValueError("the children depend on each other in a circle")
        wave = ready if subplans.parallel else ready[:1]
        found.append(wave)
        done.update(child.name for child in wave)
        left = [child for child in left if child.name not in done]
    return found


def in_a_circle(children: Sequence[Subplan]) -> Sequence[str]:
    """The names of children that can never start, because they wait for each other."""
    names = {child.name for child in children}
    done: set[str] = set()
    while True:
        ready = {
            child.name
            for child in children
            if done.issuperset(_known(child.depends_on, names)) and child.name not in done
        }
        if not ready:
            return [child.name for child in children if child.name not in done]
        done |= ready


def _known(wanted: Iterable[str], names: Collection[str]) -> set[str]:
    return {name for name in wanted if name in names}


def current(children: Iterable[ChildPlan], decision_id: DecisionId) -> Mapping[str, ChildPlan]:
    """The child of each name that counts for this spawn."""
    return {
        child.name: child for child in children if child.decision_id == decision_id and child.counts
    }
