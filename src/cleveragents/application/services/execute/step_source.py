"""Whose turn it is: a step comes from the record if it was decided, else from the actor."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from cleveragents.application.ports.actors import Actor, Actors
from cleveragents.application.ports.runtime import UnitOfWorkFactory
from cleveragents.application.services.execute.run_state import RunState
from cleveragents.domain.action import Step
from cleveragents.domain.actor_protocol import (
    Finished,
    Memory,
    Message,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
    Unannounced,
)
from cleveragents.domain.decision import Decision, ToolResult
from cleveragents.domain.errors import BudgetExhaustedError
from cleveragents.domain.plan import Plan

NOT_CARRIED_OUT = "not carried out: a person said something first"


class ActingLimits(Struct, frozen=True, kw_only=True):
    """What the settings say. A limit on steps that is not None wins over that of the action.

    `recoveries` is how many steps in a row may fail before the plan does.
    """

    recoveries: int
    max_steps: int | None = None
    default_steps: int = 100


class StepSource(Struct, frozen=True):
    _unit_of_work: UnitOfWorkFactory
    _actors: Actors
    _limits: ActingLimits

    def strategy(self, plan: Plan, course: RunState) -> Strategy:
        return self._actor(plan).strategize(self._situation(plan, course))

    def next(self, plan: Plan, course: RunState) -> Proposal | Unannounced | Finished:
        """What was decided before and is still to be done comes first: nobody is asked twice."""
        pending = course.pending(plan.last_completed_step + 1)
        if pending is not None and pending.decided is not None:
            return Proposal(
                step=pending.decided.step,
                question=pending.question,
                rationale=pending.rationale,
                memory=Memory(state=pending.decided.state),
            )
        self._refuse_without_steps_left(plan, course)
        return self._actor(plan).decide(self._situation(plan, course))

    def overruled(self, plan: Plan, course: RunState) -> Decision | None:
        """A decision that is still to be carried out, but was made before a person spoke."""
        pending = course.pending(plan.last_completed_step + 1)
        if pending is None or pending.decided is None:
            return None
        later = [item for item in course.told() if item.seq > pending.position.seq]
        return pending if later else None

    def dropped(self, plan: Plan, pending: Decision, error: str | None) -> Memory:
        """What the actor remembers of a step that is not carried out, or not again."""
        assert pending.decided is not None
        outcome = StepOutcome(
            step_index=plan.last_completed_step + 1,
            step=pending.decided.step,
            result=ToolResult(),
            error=error or NOT_CARRIED_OUT,
        )
        return self._actor(plan).observe(plan.action, pending.decided.state, outcome)

    def remembering(
        self, plan: Plan, state: Mapping[str, Any]
    ) -> Callable[[int, Step, ToolResult, str | None], Memory]:
        actor, action = self._actor(plan), plan.action

        def remember(index: int, step: Step, result: ToolResult, error: str | None) -> Memory:
            outcome = StepOutcome(step_index=index, step=step, result=result, error=error)
            return actor.observe(action, state, outcome)

        return remember

    def recovers(self, plan: Plan, failures: int) -> bool:
        """Whether the actor may answer for one more step that fails."""
        return not plan.action.is_scripted and failures < self._limits.recoveries

    def _actor(self, plan: Plan) -> Actor:
        return self._actors.of(plan.action)

    def _situation(self, plan: Plan, course: RunState) -> Situation:
        index = plan.last_completed_step + 1
        return Situation(
            plan_id=plan.plan_id,
            action=plan.action,
            step_index=index,
            state=plan.actor_state,
            guidance=tuple(course.told()),
            recall=lambda head: self._recall(plan, head),
            failed=index - 1 in course.failed,
        )

    def _recall(self, plan: Plan, head: str) -> Sequence[Message]:
        with self._unit_of_work.reading() as uow:
            return uow.messages.chain(plan.plan_id, head)

    def _refuse_without_steps_left(self, plan: Plan, course: RunState) -> None:
        if plan.action.is_scripted:
            return
        wanted = plan.action.actor.max_steps or self._limits.default_steps
        limit = self._limits.max_steps or wanted
        # What is seen only afterwards nobody could have kept an actor from doing.
        first = plan.action.use.first_step if plan.action.use else 0
        used = plan.last_completed_step + 1 - first - course.seen_only(first)
        if used >= limit:
            raise BudgetExhaustedError(
                plan.plan_id, "steps", str(used), str(limit), "actor.max-steps"
            )
