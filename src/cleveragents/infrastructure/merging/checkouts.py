"""Owns merging a child's checkout into its parent's: the tree, and the commits of submodules.

A submodule that the child has moved to another commit is taken over with its repository if nobody
has moved the parent's meanwhile. What is not committed in it are files like all others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cleveragents.application.subplan_ports import PreparedMerge
from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.sandbox import PlanResource
from cleveragents.domain.subplan import Conflict, ConflictKind
from cleveragents.infrastructure.merging.trees import PreparedTree, TreeMerge, TreeSnapshots
from cleveragents.infrastructure.sandbox.git_packs import Packs, places_in
from cleveragents.infrastructure.sandbox.git_submodule import submodules_of
from cleveragents.infrastructure.snapshots.side import StoredSide
from cleveragents.infrastructure.snapshots.tree_reader import TreeReader


class Repositories(Protocol):
    """Of the submodules of a parent's sandbox."""

    def take_over(self, place: str, other: StoredSide) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCheckout(PreparedTree):
    """`taken` are the places of submodules to be taken over, and `commits` where they stand."""

    taken: tuple[str, ...] = ()
    commits: tuple[str | None, ...] = ()


class CheckoutMerge:
    def __init__(
        self,
        trees: TreeMerge,
        snapshots: TreeSnapshots,
        repositories_of: Callable[[PlanResource], Repositories],
    ) -> None:
        self._trees = trees
        self._snapshots = snapshots
        self._repositories_of = repositories_of

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge],
    ) -> PreparedCheckout:
        tree = self._trees.prepare(parent, child, strategy, before)
        with self._snapshots.reading(parent) as ours, self._snapshots.reading(child) as theirs:
            now = _side(ours, parent.boundary)
            start, end = _side(theirs, child.base_snapshot), _side(theirs, child.boundary)
            moved = [p for p in places_in(end) if _commit(p, end) != _commit(p, start)]
            present = {place: _present(place, now, before) for place in moved}
            wanted = {place: _commit(place, end) for place in moved}
            began = {place: _commit(place, start) for place in moved}
        todo = [place for place in moved if present[place] != wanted[place]]
        wins = strategy is MergeStrategy.LAST_WINS
        taken = [place for place in todo if wins or present[place] == began[place]]
        conflicts = [_conflict(parent, place) for place in todo if place not in taken]
        return PreparedCheckout(
            resource=tree.resource,
            conflicts=(*tree.conflicts, *conflicts),
            kept=tree.kept,
            changes=tree.changes,
            merged=tree.merged,
            taken=tuple(taken),
            commits=tuple(wanted[place] for place in taken),
        )

    def carry_out(
        self, parent: PlanResource, child: PlanResource, prepared: PreparedCheckout
    ) -> None:
        self._trees.carry_out(parent, child, prepared)
        if not prepared.taken:
            return
        repositories = self._repositories_of(parent)
        with self._snapshots.reading(child) as theirs:
            end = _side(theirs, child.boundary)
            for place in prepared.taken:
                repositories.take_over(place, end)


def _side(reader: TreeReader, ref: str | None) -> StoredSide:
    session = reader.session
    return session.stored_side(session.snapshot(ref or ""))


def _commit(place: str, side: StoredSide) -> str | None:
    return Packs(place).commit(side)


def _present(place: str, now: StoredSide, before: Sequence[PreparedMerge]) -> str | None:
    """Where the parent's stands once what was prepared before is carried out."""
    for item in reversed(before):
        if isinstance(item, PreparedCheckout) and place in item.taken:
            return item.commits[item.taken.index(place)]
    return _commit(place, now)


def _conflict(parent: PlanResource, place: str) -> Conflict:
    paths = {module.place: module.path for module in submodules_of(parent)}
    path = paths.get(place, place.removeprefix("modules/"))
    return Conflict(resource=parent.name, path=path, kind=ConflictKind.SUBMODULE)
