"""The plan: its phase, its state, and every legal move between them as a method."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cleveragents.domain.action import Action
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.decision import Decision, DecisionType, Position
from cleveragents.domain.errors import (
    ChildApplyError,
    PlanAppliedError,
    PlanCancelledError,
    PlanError,
    PlanStateError,
)
from cleveragents.domain.ids import CheckpointId, DecisionId, GroupId, PlanId
from cleveragents.domain.places import plan_name
from cleveragents.domain.subplan import ChildOf


class Phase(StrEnum):
    STRATEGIZE = "strategize"
    EXECUTE = "execute"
    APPLY = "apply"


class State(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETE = "complete"
    ERRORED = "errored"
    CANCELLED = "cancelled"
    APPLIED = "applied"
    CONSTRAINED = "constrained"


class PlanFailure(Struct, frozen=True, kw_only=True):
    """Why a plan is errored or constrained, in the shape `plan status` shows."""

    message: str
    hint: str
    code: str
    tool: str | None = None
    step: int | None = None
    checkpoint: CheckpointId | None = None
    recoverable: bool = True

    @classmethod
    def of(cls, error: PlanError) -> "PlanFailure":
        return cls(message=error.message, hint=error.hint, code=error.code)


class Plan(Struct, frozen=True, kw_only=True):
    """One run of an action; `head` (column `last_checkpoint_id`) is where it stands now.

    `number` counts the plans that people have made of an action of this name, from 1.

    `child_of` is there for a child plan; it is told from the parent's rows and stored with them.
    """

    plan_id: PlanId
    action: Action
    number: int = 0
    phase: Phase = Phase.STRATEGIZE
    state: State = State.QUEUED
    attempt: int = 1
    last_completed_step: int = -1
    head: CheckpointId | None = None
    rollback_target: GroupId | None = None
    safety_group: GroupId | None = None
    rollback_only: tuple[str, ...] = ()
    timeline: int = 0
    seq: int = 0
    actor_state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: PlanFailure | None = None
    applied: Mapping[str, str] = field(default_factory=dict[str, str])
    cancel_reason: str | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    child_of: ChildOf | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        if self.child_of is not None:
            return f"{self.child_of.above}/{self.child_of.name}"
        return plan_name(self.action.name, self.number)

    @property
    def is_final(self) -> bool:
        return self.state in (State.APPLIED, State.CANCELLED)

    @property
    def executed(self) -> bool:
        """Execute has done all its steps, so that Apply may begin."""
        if self.phase is Phase.APPLY:
            return not self.is_final
        return self.phase is Phase.EXECUTE and self.state is State.COMPLETE

    @property
    def mid_step(self) -> bool:
        """A step may have left its work half done in the sandboxes."""
        return self.state in (State.PROCESSING, State.ERRORED)

    @property
    def is_result(self) -> bool:
        """It waits after a person went back or forth in what a program of theirs had done: what is
        there is what they chose. One that failed or was cut off is not: somebody has to say so."""
        waits = self.phase is Phase.EXECUTE and self.state is State.QUEUED and self.error is None
        return self.action.is_program and waits and self.head is not None

    @property
    def here(self) -> Position:
        return Position(timeline=self.timeline, seq=self.seq)

    def definition(self, decision_id: DecisionId, rationale: str) -> Decision:
        """The first decision of all: what the plan is for."""
        return Decision(
            decision_id=decision_id,
            plan_id=self.plan_id,
            parent_id=None,
            position=self.here,
            type=DecisionType.PROMPT_DEFINITION,
            question="What shall be done?",
            chosen=self.action.description,
            rationale=rationale,
            phase=self.phase,
            step_index=None,
            attempt=self.attempt,
            created_at=self.created_at,
        )

    def tick(self, times: int = 1) -> "Plan":
        """One more thing happened; each gets a number of its own that is never used again."""
        return replace(self, seq=self.seq + times)

    def refuse_if_final(self) -> None:
        if self.state is State.APPLIED:
            raise PlanAppliedError(self.plan_id)
        if self.state is State.CANCELLED:
            raise PlanCancelledError(self.plan_id)
        if self.child_of is not None:
            self.child_of.refuse_if_settled(self.plan_id)

    def refuse_if_applying(self) -> None:
        """An apply that died half-way is finished by the next one, before anything else happens."""
        if self.phase is Phase.APPLY and self.state is State.PROCESSING:
            raise PlanStateError(
                f"applying plan {self.plan_id} was interrupted, and may have changed the project",
                f"finish it with `agents plan apply {self.plan_id}`",
            )

    def start(self, now: datetime) -> "Plan":
        """Begin or continue Execute; an interrupted or errored plan may go on."""
        self.refuse_if_final()
        if self.executed:
            raise PlanStateError(
                f"plan {self.plan_id} has done all its steps",
                f"agents plan apply {self.plan_id}",
            )
        return replace(
            self,
            phase=Phase.EXECUTE,
            state=State.PROCESSING,
            error=None,
            started_at=self.started_at or now,
            finished_at=None,
        )

    def advance(self, step_index: int, actor_state: Mapping[str, Any]) -> "Plan":
        return replace(self, last_completed_step=step_index, actor_state=actor_state)

    def remembering(self, actor_state: Mapping[str, Any]) -> "Plan":
        return replace(self, actor_state=actor_state)

    def with_action(self, action: Action) -> "Plan":
        """The same with a step more; what is stored is the decision that brought it."""
        return self if action is self.action else replace(self, action=action)

    def complete(self, now: datetime) -> "Plan":
        return replace(self, state=State.COMPLETE, finished_at=now)

    def fail(self, failure: PlanFailure, now: datetime) -> "Plan":
        return replace(self, state=State.ERRORED, error=failure, finished_at=now)

    def refused(self, failure: PlanFailure) -> "Plan":
        """Execute could not go on for a reason outside its steps; it may be tried again."""
        return replace(self, phase=Phase.EXECUTE, state=State.ERRORED, error=failure)

    def hold(self, failure: PlanFailure) -> "Plan":
        """Wait for a person's word before the next step; nothing of it was begun."""
        return replace(self, state=State.QUEUED, error=failure)

    def interrupt(self) -> "Plan":
        """Wait to be resumed; whatever step was running has been undone."""
        return replace(self, state=State.QUEUED)

    def at(self, head: CheckpointId) -> "Plan":
        return replace(self, head=head)

    def begin_rollback(
        self, target: GroupId, safety: GroupId, only: tuple[str, ...] = ()
    ) -> "Plan":
        """Intent before effect; `only` names single files, and then the plan itself stays."""
        return replace(self, rollback_target=target, safety_group=safety, rollback_only=only)

    def abandon_rollback(self) -> "Plan":
        return replace(self, rollback_target=None, safety_group=None, rollback_only=())

    def with_files_restored(self) -> "Plan":
        """Go on from where it stands; whatever step was half done has been undone."""
        plan = self.abandon_rollback()
        return replace(plan, state=State.QUEUED, error=None) if self.mid_step else plan

    def corrected(self, first_step: int, actor_state: Mapping[str, Any]) -> "Plan":
        """Wait to do this step again, and whatever else a correction has taken back."""
        plan = self.abandon_rollback().reopened(first_step, actor_state)
        return replace(plan, attempt=self.attempt + 1)

    def reopened(self, next_step: int, actor_state: Mapping[str, Any]) -> "Plan":
        """Wait to go on with this step."""
        return replace(
            self,
            phase=Phase.EXECUTE,
            state=State.QUEUED,
            last_completed_step=next_step - 1,
            actor_state=actor_state,
            error=None,
            finished_at=None,
        )

    def taken_up(self, action: Action) -> "Plan":
        """Wait to run another program on the same timeline, which remembers nothing."""
        self.refuse_if_final()
        following = self.last_completed_step + 1
        use = action.use and replace(action.use, first_step=following)
        plan = self.reopened(following, {})
        return replace(plan, action=replace(action, name=self.action.name, use=use))

    def advised(self) -> "Plan":
        """Wait to go on; what went wrong is answered."""
        waiting = self.phase is Phase.STRATEGIZE
        return self if waiting else replace(self, state=State.QUEUED, error=None)

    def restore(self, target: CheckpointGroup, timeline: int) -> "Plan":
        """Stand where `target` was taken; history goes on from there on a line of its own."""
        return replace(
            self,
            phase=Phase.EXECUTE,
            state=State.QUEUED,
            last_completed_step=target.last_completed_step,
            attempt=target.attempt,
            actor_state=target.actor_state,
            head=target.head,
            timeline=timeline,
            rollback_target=None,
            safety_group=None,
            rollback_only=(),
            error=None,
        )

    def begin_apply(self) -> "Plan":
        self.refuse_if_final()
        if self.child_of is not None:
            parent, root = self.child_of.parent_id, self.child_of.root_id
            raise ChildApplyError(self.plan_id, self.child_of.name, parent, root)
        if not self.executed and not self.action.in_place:
            go_on = f"agents plan execute {self.plan_id}"
            taken = f"take what is there with `agents apply --as-it-is {self.plan_id}`"
            raise PlanStateError(
                f"plan {self.plan_id} has not done all its steps yet",
                f"{taken}, or go on with `{go_on}`" if self.action.decides else go_on,
            )
        return replace(self, phase=Phase.APPLY, state=State.PROCESSING, error=None)

    def constrain(self, failure: PlanFailure) -> "Plan":
        """An apply that was begun is not possible; it may be tried again."""
        return replace(self, state=State.CONSTRAINED, error=failure)

    def apply(self, applied: Mapping[str, str], now: datetime) -> "Plan":
        """`applied`: by resource, what its result is called in the project (for git: a commit)."""
        return replace(self, state=State.APPLIED, applied=applied, finished_at=now)

    def cancel(self, now: datetime, reason: str | None = None) -> "Plan":
        self.refuse_if_final()
        self.refuse_if_applying()
        return replace(self, state=State.CANCELLED, finished_at=now, cancel_reason=reason)
