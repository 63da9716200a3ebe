"""The decisions that Execute puts on record: what was chosen, by whom, and what they knew."""

from typing import Any

from msgspec import Struct

from cleveragents.application.ports.runtime import Runtime
from cleveragents.application.services.execute.run_state import RunState
from cleveragents.domain.action import Action, Step
from cleveragents.domain.actor_protocol import Proposal, Strategy
from cleveragents.domain.decision import (
    Decided,
    Decision,
    DecisionContext,
    DecisionType,
    ToolCall,
    ToolCallStatus,
    ToolResult,
)
from cleveragents.domain.ids import DecisionId, ToolCallId
from cleveragents.domain.plan import Plan


class Deciding(Struct, frozen=True):
    """Makes them; whoever stores one gives it its position."""

    _runtime: Runtime

    def of_strategy(self, plan: Plan, strategy: Strategy, course: RunState) -> Decision:
        return self._decision(
            plan,
            DecisionType.STRATEGY_CHOICE,
            question="How shall it be done?",
            chosen=strategy.chosen,
            parent_id=course.root.decision_id,
            context=DecisionContext(actor_state=plan.actor_state),
        )

    def of_step(self, plan: Plan, proposal: Proposal, index: int, course: RunState) -> Decision:
        decided = Decided(step=proposal.step, state=proposal.memory.state)
        return self._decision(
            plan,
            _decision_type(plan.action, proposal.step, failed=index - 1 in course.failed),
            question=proposal.question,
            chosen=f"{proposal.step.tool}: {proposal.step.name}",
            alternatives=proposal.alternatives,
            rationale=proposal.rationale,
            confidence=proposal.confidence,
            parent_id=course.parent_of(index),
            context=DecisionContext(
                tool=proposal.step.tool,
                actor_state=plan.actor_state,
                guidance=tuple(course.guidance(index)) or None,
                notes=proposal.notes,
            ),
            step_index=index,
            decided=decided if plan.action.decides else None,
        )

    def call_of(self, decision: Decision, step: Step, output: str = "") -> ToolCall:
        """Of a step that nobody of ours has run: it was found done."""
        now = self._runtime.clock.now()
        return ToolCall(
            call_id=ToolCallId(self._runtime.ids.new()),
            plan_id=decision.plan_id,
            decision_id=decision.decision_id,
            position=decision.position,
            step_index=decision.step_index or 0,
            tool=step.tool,
            arguments=step.arguments,
            status=ToolCallStatus.SUCCEEDED,
            result=ToolResult(output=output),
            started_at=now,
            finished_at=now,
        )

    def _decision(self, plan: Plan, kind: DecisionType, **told: Any) -> Decision:
        told = {"step_index": None, **told}
        return Decision(
            decision_id=DecisionId(self._runtime.ids.new()),
            plan_id=plan.plan_id,
            position=plan.here,
            type=kind,
            phase=plan.phase,
            attempt=plan.attempt,
            created_at=self._runtime.clock.now(),
            **told,
        )


def _decision_type(action: Action, step: Step, *, failed: bool) -> DecisionType:
    if action.validation(step.tool) is not None:
        return DecisionType.VALIDATION_RESPONSE
    if failed and action.decides:
        return DecisionType.ERROR_RECOVERY
    if step.subplans is None:
        return DecisionType.TOOL_INVOCATION
    parallel = step.subplans.parallel
    return DecisionType.SUBPLAN_PARALLEL_SPAWN if parallel else DecisionType.SUBPLAN_SPAWN
