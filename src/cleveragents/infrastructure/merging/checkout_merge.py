"""Merging a child's checkout into its parent's: the tree, and the commits of submodules.

A submodule that the child has moved to another commit is taken over with its repository if nobody
has moved the parent's meanwhile. What is not committed in it are files like all others.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from cleveragents.application.ports.merging import Decide, PreparedMerge
from cleveragents.domain.action import MergeStrategy
from cleveragents.domain.conflicts import LeftOut, Side
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.subplan import Conflict, ConflictKind
from cleveragents.infrastructure.merging.tree_merge import PreparedTree, TreeMerge
from cleveragents.infrastructure.sandbox.git.repository.packs import Packs, places_in
from cleveragents.infrastructure.sandbox.git.repository.state import GitState
from cleveragents.infrastructure.sandbox.git.submodules.records import submodules_of
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine
from cleveragents.infrastructure.snapshots.tree.extra_state import StoredSide
from cleveragents.infrastructure.snapshots.tree.reader import TreeReader


class PreparedCheckout(PreparedTree, frozen=True, kw_only=True):
    """`taken` are the places of submodules to be taken over, and `commits` where they stand."""

    taken: tuple[str, ...] = ()
    commits: tuple[str | None, ...] = ()


class _Moved(Struct, frozen=True, kw_only=True):
    """Where a submodule stood when the child began, stands in the parent, and in the child."""

    place: str
    began: str | None
    present: str | None
    wanted: str | None
    began_anew: bool


class CheckoutMerge(Struct, frozen=True):
    _trees: TreeMerge
    _snapshots: TreeEngine
    _repositories_of: Callable[[PlanResource], GitState]

    def prepare(
        self,
        parent: PlanResource,
        child: PlanResource,
        strategy: MergeStrategy,
        before: Sequence[PreparedMerge],
        decide: Decide,
    ) -> PreparedCheckout:
        tree = self._trees.prepare(parent, child, strategy, before, decide)
        wins = strategy is MergeStrategy.LAST_WINS
        taken: list[_Moved] = []
        conflicts: list[Conflict] = []
        left_out: list[LeftOut] = []
        for moved in self._moved(parent, child, before):
            if moved.present == moved.began:
                taken.append(moved)
                continue
            conflict = _conflict(parent, moved)
            answer = Side.THEIRS if wins else decide(conflict)
            if not isinstance(answer, Side):
                conflicts.append(conflict)
                continue
            lost = Side.OURS if answer is Side.THEIRS else Side.THEIRS
            left_out.append(LeftOut(path=conflict.path, side=lost))
            taken += [moved] if answer is Side.THEIRS else []
        return PreparedCheckout(
            resource=tree.resource,
            conflicts=(*tree.conflicts, *conflicts),
            kept=tree.kept,
            changes=tree.changes,
            drafts=tree.drafts,
            left_out=(*tree.left_out, *left_out),
            notes=(*tree.notes, *_notes(parent, taken)),
            merged=tree.merged,
            taken=tuple(moved.place for moved in taken),
            commits=tuple(moved.wanted for moved in taken),
        )

    def _moved(
        self, parent: PlanResource, child: PlanResource, before: Sequence[PreparedMerge]
    ) -> list[_Moved]:
        """Submodules that the child has moved to a commit at which the parent does not stand."""
        with self._snapshots.reading(parent) as ours, self._snapshots.reading(child) as theirs:
            now = _side(ours, parent.boundary)
            start, end = _side(theirs, child.base_snapshot), _side(theirs, child.boundary)
            moved = [
                _Moved(
                    place=place,
                    began=_commit(place, start),
                    present=_present(place, now, before),
                    wanted=_commit(place, end),
                    began_anew=child.origin is not None,
                )
                for place in places_in(end)
                if _commit(place, end) != _commit(place, start)
            ]
        return [item for item in moved if item.present != item.wanted]

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
    return reader.stored_side(ref or "")


def _commit(place: str, side: StoredSide) -> str | None:
    return Packs(place).commit(side)


def _present(place: str, now: StoredSide, before: Sequence[PreparedMerge]) -> str | None:
    """Where the parent's stands once what was prepared before is carried out."""
    for item in reversed(before):
        if isinstance(item, PreparedCheckout) and place in item.taken:
            return item.commits[item.taken.index(place)]
    return _commit(place, now)


def _path(parent: PlanResource, place: str) -> str:
    paths = {module.place: module.path for module in submodules_of(parent)}
    return paths.get(place, place.removeprefix("modules/"))


def _conflict(parent: PlanResource, moved: _Moved) -> Conflict:
    return Conflict(
        resource=parent.name,
        path=_path(parent, moved.place),
        kind=ConflictKind.SUBMODULE,
        ours=f"at commit {moved.present}",
        theirs=f"at commit {moved.wanted}",
        key=f"{moved.began}/{moved.present}/{moved.wanted}",
    )


def _notes(parent: PlanResource, taken: Sequence[_Moved]) -> tuple[str, ...]:
    return tuple(
        f"{parent.name}:{_path(parent, moved.place)} went from commit {moved.began} to"
        f" {moved.wanted}; whether that has what others had committed there was not compared"
        for moved in taken
        if moved.began_anew
    )
