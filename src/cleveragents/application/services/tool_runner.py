"""Owns one tool call: may it run, the groups before and after it, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cleveragents.application.ports import Clock, IdSource, ToolContext, Tools
from cleveragents.application.services.checkpoint_service import (
    Additions,
    CheckpointService,
    Committed,
)
from cleveragents.domain.action import Step, ToolSpec
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.decision import Decision, ToolCall, ToolCallStatus, ToolResult
from cleveragents.domain.errors import PlanError, ToolError, ToolRefusedError
from cleveragents.domain.ids import ToolCallId
from cleveragents.domain.plan import Plan, PlanFailure
from cleveragents.domain.sandbox import PlanResource


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One step to carry out; `next_actor_state` is where the actor stands once it is done."""

    step: Step
    step_index: int
    decision: Decision
    next_actor_state: Mapping[str, Any]
    resources: Sequence[PlanResource]


class ToolRunner:
    def __init__(
        self,
        tools: Tools,
        checkpoints: CheckpointService,
        ids: IdSource,
        clock: Clock,
        default_timeout: float,
    ) -> None:
        self._tools = tools
        self._checkpoints = checkpoints
        self._ids = ids
        self._clock = clock
        self._default_timeout = default_timeout

    def run(self, plan: Plan, task: Task) -> Committed:
        """Carry the task out and store that it is done; an errored plan means that it failed."""
        started_at = self._clock.now()
        spec: ToolSpec | None = None
        try:
            spec = self._tools.find(plan.action, task.step.tool)
            self._refuse_without_checkpoint(plan, spec, task)
            if spec.writes:
                plan = self._before_write(plan, task)
            result = self._call(plan, spec, task)
        except ToolError as error:
            return self._failed(plan, task, error, self._ended(task, started_at, spec, error))
        return self._succeeded(plan, task, spec, self._ended(task, started_at, spec, result))

    def _call(self, plan: Plan, spec: ToolSpec, task: Task) -> ToolResult:
        context = ToolContext(
            plan_id=plan.plan_id,
            sandboxes={resource.name: resource.sandbox_path for resource in task.resources},
            timeout=spec.timeout or self._default_timeout,
        )
        return self._tools.run(spec, task.step.arguments, context)

    def _refuse_without_checkpoint(self, plan: Plan, spec: ToolSpec, task: Task) -> None:
        policy = plan.action.rollback_policy
        if not (spec.writes and policy.enabled and policy.require_checkpoints):
            return
        if not spec.checkpointable:
            raise ToolRefusedError(
                f"{spec.name} writes, but says that its effects cannot be checkpointed",
                "set rollback_policy.require_checkpoints to false to allow it",
            )
        target = spec.resource or task.step.arguments.get("resource")
        only = len(task.resources) == 1  # then a step need not name it
        for resource in task.resources:
            meant = only or resource.name in (target, *spec.write_scope)
            if meant and not resource.checkpointable:
                raise ToolRefusedError(
                    f"{spec.name} writes to `{resource.name}`, of which no checkpoint can be made",
                    "set rollback_policy.require_checkpoints to false to allow it",
                )

    def _before_write(self, plan: Plan, task: Task) -> Plan:
        moment = _moment(task, CheckpointReason.ON_TOOL_WRITE, f"before {_what(task)}")
        return self._checkpoints.auto_create_if_configured(Trigger.ON_TOOL_WRITE, plan, moment).plan

    def _succeeded(self, plan: Plan, task: Task, spec: ToolSpec, call: ToolCall) -> Committed:
        plan = plan.advance(task.step_index, task.next_actor_state)
        additions = Additions(tool_call=call)
        if not spec.writes:
            plan = self._checkpoints.save_progress(plan, additions)
            return Committed(plan=plan, group=None, changes=())
        moment = _moment(task, CheckpointReason.ON_TOOL_WRITE_COMPLETE, f"after {_what(task)}")
        return self._checkpoints.auto_create_if_configured(
            Trigger.ON_TOOL_WRITE_COMPLETE, plan, moment, additions
        )

    def _failed(self, plan: Plan, task: Task, error: PlanError, call: ToolCall) -> Committed:
        failure = PlanFailure(
            message=error.message,
            hint=error.hint,
            code=error.code,
            tool=task.step.tool,
            step=task.step_index,
            checkpoint=plan.head,
        )
        plan = plan.fail(failure, self._clock.now())
        moment = _moment(task, CheckpointReason.ON_ERROR, f"error in {_what(task)}", mid_step=True)
        return self._checkpoints.auto_create_if_configured(
            Trigger.ON_ERROR, plan, moment, Additions(tool_call=call)
        )

    def _ended(
        self,
        task: Task,
        started_at: datetime,
        spec: ToolSpec | None,
        outcome: ToolResult | ToolError,
    ) -> ToolCall:
        failed = isinstance(outcome, ToolError)
        return ToolCall(
            call_id=ToolCallId(self._ids.new()),
            plan_id=task.decision.plan_id,
            decision_id=task.decision.decision_id,
            position=task.decision.position,
            step_index=task.step_index,
            tool=task.step.tool,
            arguments=task.step.arguments,
            status=ToolCallStatus.FAILED if failed else ToolCallStatus.SUCCEEDED,
            result=ToolResult() if isinstance(outcome, ToolError) else outcome,
            error=outcome.message if isinstance(outcome, ToolError) else None,
            changes=(),
            side_effects=spec.side_effects if spec else (),
            started_at=started_at,
            finished_at=self._clock.now(),
        )


def _moment(
    task: Task, reason: CheckpointReason, label: str, *, mid_step: bool = False
) -> CheckpointMoment:
    return CheckpointMoment(
        reason=reason,
        source=task.step.tool,
        label=label,
        decision_id=task.decision.decision_id,
        step_index=task.step_index,
        mid_step=mid_step,
    )


def _what(task: Task) -> str:
    """The call in a few words: the tool and the path it is about, or else the step's name."""
    subject = task.step.arguments.get("path") or task.step.name
    return f"{task.step.tool} {subject}"
