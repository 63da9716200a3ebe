"""What goes with a decision that is taken back, each with the reason, and what stays.

From the decision on, whatever depends on one that goes, goes too: what hangs below it, what used
its output, what nothing proves to be independent of it, and what had changed a path that goes back.
Each decision and each path is looked at once. A step that a person wants to keep goes all the same
if it is proven to depend; a result that would be lost or is known to be wrong cannot be kept.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from cleveragents.domain.decision import Decision, Dependency
from cleveragents.domain.footprint import UNDECLARED, StepWrites, Touched, doubt, parents
from cleveragents.domain.ids import DecisionId


class Reason(Struct, frozen=True, kw_only=True):
    """Why a decision goes with another; not `proven`: nothing shows that it need not."""

    why: str
    source: DecisionId | None = None
    proven: bool = True


class AffectedSet(Struct, frozen=True, kw_only=True):
    """`kept` are those that would have gone, had a person not wanted to keep them.

    `restored` names, by resource, the paths that go back; None stands for all of the resource.
    """

    decisions: Mapping[DecisionId, Reason]
    kept: Mapping[DecisionId, Reason]
    restored: Mapping[str, tuple[str, ...] | None]


class History(Struct, frozen=True, kw_only=True):
    """The live decisions of a plan, what they did, and who used whose output."""

    decisions: Sequence[Decision]
    dependencies: Sequence[Dependency]
    deeds: Mapping[DecisionId, StepWrites]

    def affected_by(
        self, decision_id: DecisionId, *, since: int, keep: Collection[DecisionId] = ()
    ) -> AffectedSet:
        """What goes with a decision whose files go back to the state at `since`."""
        return _Search(history=self, since=since, keep=keep).run(decision_id)

    def touched(self, decision_id: DecisionId) -> Touched:
        deed = self.deeds.get(decision_id)
        return {} if deed is None else deed.touched


class _Changes(Struct):
    """Who has changed what in one resource since then."""

    everybody: list[DecisionId] = field(default_factory=list[DecisionId])
    at: dict[str, list[DecisionId]] = field(default_factory=dict[str, list[DecisionId]])

    def add(self, decision_id: DecisionId, paths: Iterable[str]) -> None:
        self.everybody.append(decision_id)
        for path in paths:
            for one in (path, *parents(path)):
                self.at.setdefault(one, []).append(decision_id)


class _Search:
    """One walk from a decision to all that goes with it."""

    def __init__(self, history: History, since: int, keep: Collection[DecisionId]) -> None:
        self._history = history
        self._keep = frozenset(keep)
        self._followers = _followers(history)
        self._changes = _changes(history.deeds.values(), since)
        self._index = {d.decision_id: d.step_index for d in history.decisions}
        self._found: dict[DecisionId, Reason] = {}
        self._kept: dict[DecisionId, Reason] = {}
        self._unsure = [d for d in history.deeds.values() if _is_unsure(d)]
        self._whole: set[str] = set()
        self._gone: set[tuple[str, str]] = set()

    def run(self, start: DecisionId) -> AffectedSet:
        self._found[start] = Reason(why="is corrected")
        waiting = [start]
        while waiting:
            current = waiting.pop()
            for other, reason in self._reached_from(current, is_start=current == start):
                if other in self._found:
                    continue
                if other in self._keep and not reason.proven:
                    self._kept.setdefault(other, reason)
                    continue
                self._found[other] = reason
                waiting.append(other)
        kept = {key: why for key, why in self._kept.items() if key not in self._found}
        return AffectedSet(decisions=self._found, kept=kept, restored=self._restored())

    def _reached_from(
        self, current: DecisionId, *, is_start: bool
    ) -> Iterator[tuple[DecisionId, Reason]]:
        yield from self._followers.get(current, ())
        yield from self._lost_with(current)
        yield from self._not_proven(current, is_start=is_start)

    def _lost_with(self, current: DecisionId) -> Iterator[tuple[DecisionId, Reason]]:
        """Those whose own changes are gone once what this one changed goes back."""
        for resource, footprint in self._history.touched(current).items():
            changes = self._changes.get(resource, _Changes())
            if footprint.whole and resource not in self._whole:
                self._whole.add(resource)
                reason = Reason(why=f"changed {resource}, which goes back whole", source=current)
                yield from ((other, reason) for other in changes.everybody)
            for path in footprint.paths:
                if (resource, path) in self._gone:
                    continue
                self._gone.add((resource, path))
                why = f"changed {resource}:{path}, which goes back"
                reason = Reason(why=why, source=current)
                yield from ((other, reason) for other in changes.at.get(path, ()))

    def _not_proven(
        self, current: DecisionId, *, is_start: bool
    ) -> Iterator[tuple[DecisionId, Reason]]:
        """Later steps of which nobody can say that they did not use what this one did.

        What takes the place of the corrected step may change anything.
        """
        index, deed = self._index.get(current), self._history.deeds.get(current)
        known = self._found.keys() | self._kept.keys()
        self._unsure = [other for other in self._unsure if other.decision_id not in known]
        for other in self._unsure:
            if index is None or other.step_index is None or other.step_index <= index:
                continue
            why = doubt(other.reach, deed) if deed is not None else None
            if is_start and other.reach.reads is None:
                why = UNDECLARED
            if why is not None:
                yield other.decision_id, Reason(why=why, source=current, proven=False)

    def _restored(self) -> Mapping[str, tuple[str, ...] | None]:
        paths: dict[str, set[str]] = {}
        for decision_id in self._found:
            for resource, footprint in self._history.touched(decision_id).items():
                # A folder that came with its files goes with the last of them: `name/`.
                folders = {f"{folder}/" for folder in footprint.folders}
                paths.setdefault(resource, set()).update(footprint.paths | folders)
        return {
            resource: None if resource in self._whole else tuple(sorted(found))
            for resource, found in sorted(paths.items())
            if found or resource in self._whole
        }


def _is_unsure(deed: StepWrites) -> bool:
    return deed.reach.reads is None or deed.reach.reads_hidden


def _followers(history: History) -> Mapping[DecisionId, list[tuple[DecisionId, Reason]]]:
    live = {decision.decision_id for decision in history.decisions}
    found: dict[DecisionId, list[tuple[DecisionId, Reason]]] = {}
    for decision in history.decisions:
        if decision.parent_id is not None:
            reason = Reason(why="was made because of it", source=decision.parent_id)
            found.setdefault(decision.parent_id, []).append((decision.decision_id, reason))
    for item in history.dependencies:
        if item.decision_id in live and item.depends_on in live:
            reason = Reason(why=item.why, source=item.depends_on)
            found.setdefault(item.depends_on, []).append((item.decision_id, reason))
    return found


def _changes(deeds: Iterable[StepWrites], since: int) -> Mapping[str, _Changes]:
    found: dict[str, _Changes] = {}
    for deed in deeds:
        touched = deed.touched.items() if deed.seq > since else ()
        for resource, footprint in touched:
            if footprint:
                changes = found.setdefault(resource, _Changes())
                changes.add(deed.decision_id, footprint.paths)
    return found
