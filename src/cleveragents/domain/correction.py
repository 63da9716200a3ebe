"""Owns corrections: what one takes back, what it leaves alone, and what it puts in its place."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from cleveragents.domain.action import Step
from cleveragents.domain.decision import Decision, Dependency, Position, is_live
from cleveragents.domain.footprint import Touched
from cleveragents.domain.ids import CorrectionId, DecisionId, GroupId, PlanId


class CorrectionMode(StrEnum):
    REVERT = "revert"
    APPEND = "append"


class CorrectionStatus(StrEnum):
    PENDING = "pending"
    DONE = "done"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """One decision that a person corrected.

    `affected` is superseded by it and `steps` are done again. `restored` names, by resource, the
    paths that went back to `target_group`; None stands for all of the resource. `safety_group` is
    the state before, to compare with and to go back to. `replacement` takes the place of the
    step of the corrected decision.
    """

    correction_id: CorrectionId
    plan_id: PlanId
    decision_id: DecisionId
    mode: CorrectionMode
    guidance: str
    status: CorrectionStatus
    target_group: GroupId | None = None
    safety_group: GroupId | None = None
    intervention_id: DecisionId | None = None
    affected: tuple[DecisionId, ...] = ()
    steps: tuple[int, ...] = ()
    restored: Mapping[str, tuple[str, ...] | None] = field(
        default_factory=dict[str, tuple[str, ...] | None]
    )
    step_index: int | None = None
    replacement: Step | None = None
    created_at: datetime

    def is_about(self, decision_id: DecisionId) -> bool:
        return decision_id in (self.decision_id, self.intervention_id, *self.affected)

    def done(self) -> "Correction":
        return replace(self, status=CorrectionStatus.DONE)

    def abandoned(self) -> "Correction":
        return replace(self, status=CorrectionStatus.ABANDONED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """At `position` a correction took the place of a decision."""

    decision_id: DecisionId
    correction_id: CorrectionId
    position: Position


def superseded_decisions(
    decisions: Iterable[Decision],
    supersessions: Iterable[Supersession],
    reach: Mapping[int, int | None],
) -> frozenset[DecisionId]:
    """What does not count on the line of events that `reach` describes.

    A decision is gone if a rollback left it behind, or if a correction that still counts took
    its place: going back to before the correction brings it back to life.
    """
    replaced = {item.decision_id for item in supersessions if is_live(item.position, reach)}
    return frozenset(
        decision.decision_id
        for decision in decisions
        if decision.decision_id in replaced or not is_live(decision.position, reach)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What a live decision did: its step, and what that changed. `seq` is when."""

    decision_id: DecisionId
    step_index: int | None
    seq: int
    touched: Touched


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedSet:
    """`restored` as in Correction."""

    decisions: frozenset[DecisionId]
    restored: Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The live decisions of a plan, what they did, and who used whose output."""

    decisions: Sequence[Decision]
    dependencies: Sequence[Dependency]
    deeds: Mapping[DecisionId, Deed]

    def affected_by(self, decision_id: DecisionId, *, since: int) -> AffectedSet:
        """What goes with a decision whose files go back to the state at `since`.

        Its subtree, and whatever used the output of any of these. Each decision and each
        dependency is looked at once. Where single paths do not tell it all, the resource goes
        back as a whole, and so does everybody who touched it since then.
        """
        followers = self._followers()
        touchers = self._touchers(since)
        whole: set[str] = set()
        found = {decision_id}
        waiting = [decision_id]
        while waiting:
            current = waiting.pop()
            reached = list(followers.get(current, ()))
            for resource, footprint in self._touched(current).items():
                if footprint.whole and resource not in whole:
                    whole.add(resource)
                    reached += touchers.get(resource, ())
            for other in reached:
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return AffectedSet(decisions=frozenset(found), restored=self._restored(found, whole))

    def _followers(self) -> Mapping[DecisionId, list[DecisionId]]:
        live = {decision.decision_id for decision in self.decisions}
        followers: dict[DecisionId, list[DecisionId]] = {}
        for decision in self.decisions:
            if decision.parent_id is not None:
                followers.setdefault(decision.parent_id, []).append(decision.decision_id)
        for item in self.dependencies:
            if item.decision_id in live and item.depends_on in live:
                followers.setdefault(item.depends_on, []).append(item.decision_id)
        return followers

    def _touchers(self, since: int) -> Mapping[str, list[DecisionId]]:
        found: dict[str, list[DecisionId]] = {}
        for deed in self.deeds.values():
            touched = deed.touched.items() if deed.seq > since else ()
            for resource in [name for name, footprint in touched if footprint]:
                found.setdefault(resource, []).append(deed.decision_id)
        return found

    def _touched(self, decision_id: DecisionId) -> Touched:
        deed = self.deeds.get(decision_id)
        return {} if deed is None else deed.touched

    def _restored(
        self, decisions: Iterable[DecisionId], whole: Iterable[str]
    ) -> Mapping[str, tuple[str, ...] | None]:
        paths: dict[str, set[str]] = {}
        for decision_id in decisions:
            for resource, footprint in self._touched(decision_id).items():
                # A folder that came with its files goes with the last of them: `name/`.
                folders = {f"{folder}/" for folder in footprint.folders}
                paths.setdefault(resource, set()).update(footprint.paths | folders)
        everything = set(whole)
        return {
            resource: None if resource in everything else tuple(sorted(found))
            for resource, found in sorted(paths.items())
            if found or resource in everything
        }
