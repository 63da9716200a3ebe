"""Corrections: what one takes back, what it leaves alone, and what it puts in its place."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.action import Step
from cleveragents.domain.decision import Decision, Position, ToolCall, is_live
from cleveragents.domain.ids import CorrectionId, DecisionId, GroupId, PlanId


class CorrectionMode(StrEnum):
    REVERT = "revert"
    APPEND = "append"


class CorrectionStatus(StrEnum):
    PENDING = "pending"
    DONE = "done"
    ABANDONED = "abandoned"


class Correction(Struct, frozen=True, kw_only=True):
    """One decision that a person corrected.

    `affected` is superseded by it and `steps` are done again; `kept` are those that a person wants
    to stay although nothing proves that they still hold. `restored` names, by resource, the
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
    kept: tuple[DecisionId, ...] = ()
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


class Supersession(Struct, frozen=True, kw_only=True):
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


class Unchecked(Struct, frozen=True, kw_only=True):
    """At `position` a person let the result of a decision stand that may not hold any more."""

    decision_id: DecisionId
    position: Position
    why: str


def unchecked_decisions(
    marks: Iterable[Unchecked],
    calls: Iterable[ToolCall],
    reach: Mapping[int, int | None],
) -> Mapping[DecisionId, str]:
    """Those whose result counts, was let stand, and was not made again since; with the reason.

    `calls` are all of the plan. Going back to before a mark takes it away, going forward again
    brings it back.
    """
    made = {call.decision_id: call.position.seq for call in calls if not call.undone}
    return {
        mark.decision_id: mark.why
        for mark in marks
        if is_live(mark.position, reach)
        and made.get(mark.decision_id, mark.position.seq) < mark.position.seq
    }
