"""Decisions and tool calls: what was chosen, why, and what came of it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from cleveragents.domain.action import Step
from cleveragents.domain.changes import FileChange
from cleveragents.domain.footprint import UNKNOWN, Footprint, Reach, StepWrites
from cleveragents.domain.ids import CorrectionId, DecisionId, PlanId, ToolCallId


class DecisionType(StrEnum):
    PROMPT_DEFINITION = "prompt_definition"
    INVARIANT_ENFORCED = "invariant_enforced"
    STRATEGY_CHOICE = "strategy_choice"
    RESOURCE_SELECTION = "resource_selection"
    SUBPLAN_SPAWN = "subplan_spawn"
    SUBPLAN_PARALLEL_SPAWN = "subplan_parallel_spawn"
    IMPLEMENTATION_CHOICE = "implementation_choice"
    TOOL_INVOCATION = "tool_invocation"
    ERROR_RECOVERY = "error_recovery"
    VALIDATION_RESPONSE = "validation_response"
    USER_INTERVENTION = "user_intervention"


class Position(Struct, frozen=True, kw_only=True):
    """A place in a plan's history: the line of events it is on, and how far along that line."""

    timeline: int
    seq: int


class Decided(Struct, frozen=True, kw_only=True):
    """The step that an actor made up, and what it remembers from then on.

    On record before the step runs: nobody is asked twice for the same decision (ADR 0027).
    """

    step: Step
    state: Mapping[str, Any]


class DecisionContext(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was known when a decision was made; None is what does not belong to one of its kind.

    Of a step: its `tool`, what people had told the actor (`guidance`), and what the actor notes for
    people. Of a person's word: the `correction`, which decision was `corrected`, the `steps` that
    are done again, and the `first_step` that comes after it. `actor_state` is where the actor
    stood.
    """

    tool: str | None = None
    actor_state: Mapping[str, Any] | None = None
    guidance: tuple[str, ...] | None = None
    correction: CorrectionId | None = None
    corrected: DecisionId | None = None
    steps: tuple[int, ...] | None = None
    first_step: int | None = None
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Decision(Struct, frozen=True, kw_only=True):
    """`decided` is there for a step that is not written in the action."""

    decision_id: DecisionId
    plan_id: PlanId
    parent_id: DecisionId | None
    position: Position
    type: DecisionType
    question: str
    chosen: str
    alternatives: tuple[str, ...] = ()
    rationale: str = ""
    confidence: float | None = None
    context: DecisionContext = DecisionContext()
    phase: str
    step_index: int | None
    attempt: int
    superseded: bool = False
    decided: Decided | None = None
    created_at: datetime


class Dependency(Struct, frozen=True, kw_only=True):
    """`decision_id` used the output of `depends_on`."""

    decision_id: DecisionId
    depends_on: DecisionId
    why: str


class ToolCallStatus(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class ToolResult(Struct, frozen=True, kw_only=True):
    """What a tool gave back: `output` for people, `values` for programs and later steps."""

    output: str = ""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


class ToolCall(Struct, frozen=True, kw_only=True):
    """One call that ended. `undone` says that a rollback or a correction took its effects back.

    `changes` is for people; `touched` has the same exactly, by the name of the resource. `reach` is
    how far it may have looked.
    """

    call_id: ToolCallId
    plan_id: PlanId
    decision_id: DecisionId
    position: Position
    step_index: int
    tool: str
    arguments: Mapping[str, Any]
    status: ToolCallStatus
    result: ToolResult
    error: str | None = None
    changes: tuple[FileChange, ...] = ()
    touched: Mapping[str, Footprint] = field(default_factory=dict[str, Footprint])
    reach: Reach = UNKNOWN
    side_effects: tuple[str, ...] = ()
    started_at: datetime
    finished_at: datetime
    undone: bool = False

    @property
    def deed(self) -> StepWrites:
        return StepWrites(
            decision_id=self.decision_id,
            step_index=self.step_index,
            seq=self.position.seq,
            touched=self.touched,
            reach=self.reach,
        )


class Fork(Struct, frozen=True, kw_only=True):
    """Timeline `timeline` began at `start`, a position on an earlier one."""

    timeline: int
    start: Position


def lineage(timeline: int, forks: Iterable[Fork]) -> Mapping[int, int | None]:
    """How far each timeline that leads to `timeline` still counts; None means all of it."""
    starts = {fork.timeline: fork.start for fork in forks}
    reach: dict[int, int | None] = {timeline: None}
    current, limit = timeline, None
    while (start := starts.get(current)) is not None:
        limit = start.seq
        current = start.timeline
        reach[current] = limit
    return reach


def is_live(position: Position, reach: Mapping[int, int | None]) -> bool:
    """Whether what happened at `position` still counts on the line that `reach` describes."""
    if position.timeline not in reach:
        return False
    limit = reach[position.timeline]
    return limit is None or position.seq <= limit


def children_of(decisions: Sequence[Decision]) -> Mapping[DecisionId | None, list[Decision]]:
    by_parent: dict[DecisionId | None, list[Decision]] = {}
    for decision in decisions:
        by_parent.setdefault(decision.parent_id, []).append(decision)
    return by_parent
