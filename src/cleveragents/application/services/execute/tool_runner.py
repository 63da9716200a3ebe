"""One step's tool call: may it run, the groups around it, new tries, and what became of it.

In which order: the refusals; the group before a write; the ledger's note that an outside effect
begins; the tool; after a failure the sandboxes back to the boundary, and once more; the outcome.
Why: the group and the note have to be on record before the tool can change anything. That a try
failed is stored before it is taken back, and so is known whatever becomes of the next one.
What is not guaranteed: that a tool which failed or was cut off did nothing outside; it is uncertain
from then on. What a step left by which the plan fails stays in the sandboxes until a resume.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.application.ports.runtime import (
    Runtime,
    ToolContext,
    Tools,
)
from cleveragents.application.services.checkpoints.checkpoint_service import (
    CheckpointService,
    CommitExtras,
    Committed,
)
from cleveragents.application.services.checkpoints.held import HeldResources
from cleveragents.application.services.effects.effect_ledger import (
    EffectLedger,
    EffectsOfSteps,
    standing,
)
from cleveragents.application.services.execute.step_boundary import StepBoundary
from cleveragents.domain.action import Step, ToolSpec, Validation
from cleveragents.domain.actor_protocol import Memory
from cleveragents.domain.checkpoint import CheckpointMoment, CheckpointReason, Trigger
from cleveragents.domain.conflicts import UNDECIDED, Resolution
from cleveragents.domain.decision import Decision, ToolCall, ToolCallStatus, ToolResult
from cleveragents.domain.effects import Effect, EffectChoice, EffectVerdict, passage
from cleveragents.domain.errors import (
    ToolError,
    ToolNotEndedError,
    ToolNotFoundError,
    ToolNotStartedError,
    ToolRefusedError,
    ToolWroteError,
)
from cleveragents.domain.footprint import Writers
from cleveragents.domain.ids import PlanId, ToolCallId
from cleveragents.domain.plan import Plan, PlanFailure
from cleveragents.domain.preflight import refusals
from cleveragents.domain.retries import may_retry, pause_before

Remember = Callable[[int, Step, ToolResult, str | None], Memory]


class Task(Struct, frozen=True, kw_only=True):
    """One step to carry out; `remember` gives what the actor knows once it has ended.

    `recovers`: if it fails, the actor is told and decides what to do; else the plan has failed.
    `writers` are the live steps that ran before it. `skip` is the earlier run whose outside effect
    a person takes as done: then nothing runs. `choice` is what the person said about all such
    steps, for child plans, `resolution` what about conflicts of these. `is_prepared` says that the
    group before a write was just made.
    """

    step: Step
    step_index: int
    decision: Decision
    remember: Remember
    resources: HeldResources
    writers: Writers
    recovers: bool = False
    skip: Effect | None = None
    choice: EffectChoice = EffectChoice.STOP
    resolution: Resolution = UNDECIDED
    is_prepared: bool = False

    def before_write(self) -> CheckpointMoment:
        return self.moment(CheckpointReason.ON_TOOL_WRITE, f"before {_what(self)}")

    def memory(self, result: ToolResult, error: str | None = None) -> Memory:
        return self.remember(self.step_index, self.step, result, error)

    def moment(
        self, reason: CheckpointReason, label: str, *, mid_step: bool = False
    ) -> CheckpointMoment:
        """For a group that belongs to this step."""
        return CheckpointMoment(
            reason=reason,
            source=self.step.tool,
            label=label,
            decision_id=self.decision.decision_id,
            step_index=self.step_index,
            mid_step=mid_step,
        )


class RunLimits(Struct, frozen=True, kw_only=True):
    """What the settings say: seconds for one call, and new tries for a step that failed."""

    timeout: float
    retries: int


class EffectGate(Struct, frozen=True, kw_only=True):
    """What happens to a step, and the earlier run of it that is the reason."""

    passage: EffectVerdict
    standing: Effect | None
    choice: EffectChoice = EffectChoice.STOP


class _Ended(Struct, frozen=True, kw_only=True):
    """One call that came to its end, not stored yet; `error` None means that it succeeded."""

    plan: Plan
    call: ToolCall
    effect: Effect | None
    error: ToolError | None

    @property
    def additions(self) -> CommitExtras:
        return CommitExtras(tool_call=self.call, effect=self.effect)


class StepRunner(Protocol):
    """Carries out steps, whatever they consist of."""

    def run(self, plan: Plan, task: Task) -> Committed:
        """Carry the task out and store that it is done; an errored plan means that it failed."""
        ...


class ToolRunner(Struct, frozen=True):
    _runtime: Runtime
    _tools: Tools
    _checkpoints: CheckpointService
    _ledger: EffectLedger
    _boundary: StepBoundary
    _limits: RunLimits

    def crossing(
        self,
        plan: Plan,
        step: Step,
        step_index: int,
        choice: EffectChoice,
        effects: EffectsOfSteps,
    ) -> EffectGate:
        """Whether the step may run, given what steps have done outside before."""
        try:
            spec = self._tools.find(plan.action, step.tool)
        except ToolNotFoundError:
            # Child plans are asked one by one; for anything else, running it tells the reason.
            return EffectGate(passage=EffectVerdict.RUN, standing=None, choice=choice)
        earlier = standing(effects, step, step_index)
        found = passage(earlier, choice, idempotent=spec.idempotent)
        return EffectGate(passage=found, standing=earlier, choice=choice)

    def end(self, plan_id: PlanId) -> None:
        """End all that was started for the plan and is still there. May be repeated."""
        self._tools.end(plan_id)

    def writes_at_once(self, plan: Plan, task: Task) -> bool:
        """Whether running the task begins with a write, for which there has to be a group."""
        try:
            spec = self._tools.find(plan.action, task.step.tool)
            self._refuse_without_checkpoint(plan, spec, task)
        except ToolError:
            return False  # running it tells the reason
        return spec.writes and task.skip is None

    def run(self, plan: Plan, task: Task) -> Committed:
        try:
            spec = self._tools.find(plan.action, task.step.tool)
            self._refuse_without_checkpoint(plan, spec, task)
        except ToolError as error:
            return self._failed(task, self._ended(plan, task, self._runtime.clock.now(), error))
        if task.skip is not None:
            return self._skipped(plan, task, spec, task.skip)
        ended, tries = self._attempt(plan, task, spec), 1
        task = replace(task, is_prepared=False)
        while ended.error is not None and self._tries_again(ended, task, spec, tries):
            plan = self._take_back(task, ended, tries)
            ended, tries = self._attempt(plan, task, spec), tries + 1
        if spec.validation is not None:
            # It is to judge the result, not to add to it: caches and reports do not stay.
            self._boundary.return_to(task.resources)
        if ended.error is None:
            return self._succeeded(task, spec, ended)
        if spec.validation is Validation.INFORMATIONAL:
            return self._noted(task, ended, ended.error)
        return self._failed(task, ended)

    # --- one call -------------------------------------------------------------------------------

    def _attempt(self, plan: Plan, task: Task, spec: ToolSpec) -> _Ended:
        if spec.writes and not task.is_prepared:
            plan = self._before_write(plan, task)
        effect: Effect | None = None
        if spec.outside_effects:
            plan, effect = self._ledger.begin(plan, task.decision, task.step, spec)
        started_at = self._runtime.clock.now()
        task.resources.something_runs()
        try:
            result = self._tools.run(spec, task.step.arguments, self._context(plan, spec, task))
        except ToolNotStartedError as error:
            if effect is not None:
                self._ledger.forget(effect)
            return self._ended(plan, task, started_at, error, spec)
        except ToolError as error:
            ended = self._ended(plan, task, started_at, error, spec)
            known = effect and effect.uncertain(error.message, self._runtime.clock.now())
            return replace(ended, effect=known)
        outcome = self._found_out(plan, spec, task) or result
        ended = self._ended(plan, task, started_at, outcome, spec)
        return replace(ended, effect=effect and effect.done(result, self._runtime.clock.now()))

    def _found_out(self, plan: Plan, spec: ToolSpec, task: Task) -> ToolError | None:
        """What a tool wrote that says it only reads, where nothing else keeps it from that."""
        if spec.writes or spec.validation is not None:
            return None
        if self._tools.is_held_to_reading(plan.action, spec):
            return None
        written = self._checkpoints.written(task.resources)
        return ToolWroteError(spec.name, written) if written else None

    def _context(self, plan: Plan, spec: ToolSpec, task: Task) -> ToolContext:
        return ToolContext(
            plan_id=plan.plan_id,
            sandboxes={r.name: r.address for r in task.resources.sandboxes},
            timeout=spec.timeout or self._limits.timeout,
            confinement=plan.action.confinement,
            servers={server.name: server.command for server in plan.action.servers},
            reading_servers=plan.action.reading_servers,
        )

    def _refuse_without_checkpoint(self, plan: Plan, spec: ToolSpec, task: Task) -> None:
        captured = {r.name: r.checkpointable for r in task.resources.sandboxes}
        for reason in refusals(plan.action.rollback_policy, spec, task.step.arguments, captured):
            raise ToolRefusedError(
                reason, "set rollback_policy.require_checkpoints to false to allow it"
            )

    def _before_write(self, plan: Plan, task: Task) -> Plan:
        return self._checkpoints.auto_create_if_configured(
            Trigger.ON_TOOL_WRITE, plan, task.resources, task.before_write()
        ).plan

    # --- once more ------------------------------------------------------------------------------

    def _tries_again(self, ended: _Ended, task: Task, spec: ToolSpec, tries: int) -> bool:
        wanted = ended.plan.action.max_retries_per_step
        limit = self._limits.retries if wanted is None else wanted
        captured = task.resources.all_capturable
        assert ended.error is not None
        if spec.validation is not None:
            return False  # it has given its answer
        if task.resources.in_place:
            return False  # what it left there is not taken back, and a second try would add to it
        return tries <= limit and may_retry(spec, ended.error, captured=captured)

    def _take_back(self, task: Task, ended: _Ended, tries: int) -> Plan:
        """Store that this try failed, and make the sandboxes as they were before it."""
        plan = self._checkpoints.save_progress(ended.plan, ended.additions)
        self._boundary.return_to(task.resources)
        self._runtime.clock.pause(pause_before(tries))
        return plan

    # --- how it ends ----------------------------------------------------------------------------

    def _succeeded(self, task: Task, spec: ToolSpec, ended: _Ended) -> Committed:
        plan, additions = self._advanced(task, self._with_reach(ended, task, spec))
        additions = replace(additions, writers=task.writers)
        if not spec.writes:
            plan = self._checkpoints.save_progress(plan, additions)
            return Committed(plan=plan, changes=())
        moment = task.moment(CheckpointReason.ON_TOOL_WRITE_COMPLETE, f"after {_what(task)}")
        return self._checkpoints.auto_create_if_configured(
            Trigger.ON_TOOL_WRITE_COMPLETE, plan, task.resources, moment, additions
        )

    def _with_reach(self, ended: _Ended, task: Task, spec: ToolSpec) -> _Ended:
        reach = self._tools.reach(spec, task.step.arguments, ended.plan.action, _paths(task))
        return replace(ended, call=replace(ended.call, reach=reach))

    def _skipped(self, plan: Plan, task: Task, spec: ToolSpec, earlier: Effect) -> Committed:
        plan = plan.tick()
        ended = self._ended(plan, task, self._runtime.clock.now(), earlier.result, spec)
        ended = self._with_reach(ended, task, spec)
        known = self._ledger.skipped(plan, task.decision, task.step, spec, earlier)
        plan, additions = self._advanced(task, replace(ended, effect=known))
        plan = self._checkpoints.save_progress(plan, additions)
        return Committed(plan=plan, changes=())

    def _noted(self, task: Task, ended: _Ended, error: ToolError) -> Committed:
        plan, additions = self._advanced(task, ended)
        plan = self._checkpoints.save_progress(plan, additions)
        return Committed(plan=plan, changes=(), notice=error.message)

    def _advanced(self, task: Task, ended: _Ended) -> tuple[Plan, CommitExtras]:
        """Past the step, with what its actor has heard of it."""
        error = ended.error.message if ended.error else None
        memory = task.memory(ended.call.result, error)
        plan = ended.plan.advance(task.step_index, memory.state)
        return plan, replace(ended.additions, messages=memory.added)

    def _answered(self, task: Task, ended: _Ended, error: ToolError) -> Committed:
        """The actor hears of it; what the step left in the sandboxes is taken back first."""
        self._boundary.return_to(task.resources)
        return replace(self._noted(task, ended, error), failed=True)

    def _failed(self, task: Task, ended: _Ended) -> Committed:
        plan, error = ended.plan, ended.error
        assert error is not None
        if task.recovers and not isinstance(error, ToolNotEndedError):
            return self._answered(task, ended, error)
        doubt = f"; look with `agents plan effects {plan.plan_id}` at what it did outside"
        failure = replace(
            PlanFailure.of(error),
            hint=error.hint + (doubt if ended.effect else ""),
            tool=task.step.tool,
            step=task.step_index,
            checkpoint=plan.head,
        )
        plan = plan.fail(failure, self._runtime.clock.now())
        if not isinstance(error, ToolNotEndedError):  # that is ended as soon as it can be
            self._tools.end(plan.plan_id)
        moment = task.moment(CheckpointReason.ON_ERROR, f"error in {_what(task)}", mid_step=True)
        wrote = isinstance(error, ToolWroteError)  # what nobody expected is on record
        return self._checkpoints.auto_create_if_configured(
            Trigger.ON_ERROR, plan, task.resources, moment, ended.additions, anyway=wrote
        )

    def _ended(
        self,
        plan: Plan,
        task: Task,
        started_at: datetime,
        outcome: ToolResult | ToolError,
        spec: ToolSpec | None = None,
    ) -> _Ended:
        error = outcome if isinstance(outcome, ToolError) else None
        call = ToolCall(
            call_id=ToolCallId(self._runtime.ids.new()),
            plan_id=task.decision.plan_id,
            decision_id=task.decision.decision_id,
            position=task.decision.position,
            step_index=task.step_index,
            tool=task.step.tool,
            arguments=task.step.arguments,
            status=ToolCallStatus.FAILED if error else ToolCallStatus.SUCCEEDED,
            result=ToolResult() if isinstance(outcome, ToolError) else outcome,
            error=error.message if error else None,
            side_effects=spec.outside_effects if spec else (),
            started_at=started_at,
            finished_at=self._runtime.clock.now(),
        )
        return _Ended(plan=plan, call=call, effect=None, error=error)


def _paths(task: Task) -> Mapping[str, str]:
    return {r.name: r.sandbox_path for r in task.resources.sandboxes}


def _what(task: Task) -> str:
    """The call in a few words: the tool and the path it is about, or else the step's name."""
    subject = task.step.arguments.get("path") or task.step.name
    return f"{task.step.tool} {subject}"
