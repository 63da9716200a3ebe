"""Correcting a decision: guard, ask, carry out, and go on with a person's advice."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from cleveragents.application.ports.actors import ActionReader
from cleveragents.application.ports.runtime import (
    Runtime,
    UnitOfWork,
)
from cleveragents.application.services.checkpoints.held import HeldPlan
from cleveragents.application.services.corrections.correction_finisher import (
    Corrected,
    CorrectionFinisher,
)
from cleveragents.application.services.corrections.correction_impact import (
    CorrectionImpact,
    impact_of,
    refuse_if_settled,
)
from cleveragents.application.services.execute.plan_executor import STEP_OUTDATED
from cleveragents.application.services.execute.plan_resume_service import PlanResumeService
from cleveragents.application.services.execute.run_state import done_steps, unchecked_of
from cleveragents.application.services.plans.plan_lookup import find_decision
from cleveragents.application.services.rollback.rollback_files import reverted
from cleveragents.application.services.rollback.rollback_service import RollbackService
from cleveragents.application.services.subplans.sandboxes import children_stopped
from cleveragents.domain.action import Step, step_number
from cleveragents.domain.checkpoint import RevertedFile
from cleveragents.domain.correction import Correction, CorrectionMode, CorrectionStatus
from cleveragents.domain.decision import Decision, DecisionType
from cleveragents.domain.errors import (
    CorrectionRefusedError,
    DeclinedError,
    PlanStateError,
    UsageError,
)
from cleveragents.domain.ids import CorrectionId, DecisionId, PlanId
from cleveragents.domain.plan import Plan

ALL = "all"
"""As a step to keep: every one that is not proven to depend on what is corrected."""


class Advice(Struct, frozen=True, kw_only=True):
    """What a person says; `step_file` holds the step that takes the place of the corrected one.

    `keep` are steps that stay although nothing proves that they still hold, by number or name or
    `all`; None stands for those that were kept before.
    """

    guidance: str
    step_file: str | None = None
    keep: tuple[str, ...] | None = ()


class Keeping(Struct, frozen=True, kw_only=True):
    """`asked` has the steps that were named one by one: if one of them cannot stay, that is told
    before anything changes."""

    decisions: frozenset[DecisionId] = frozenset()
    asked: Mapping[DecisionId, str] = field(default_factory=dict[DecisionId, str])

    @classmethod
    def wanted(cls, uow: UnitOfWork, plan: Plan, texts: Sequence[str]) -> "Keeping":
        """Each a step's number or name, or `all`. Raises UsageError."""
        if not texts:
            return cls()  # nearly always; the rest would make long plans slow
        done = done_steps(uow, plan, uow.tool_calls.of_plan(plan.plan_id))
        asked = {done[i]: text for text in texts if text != ALL for i in [_step(plan, done, text)]}
        every = done.values() if ALL in texts else ()
        return cls(decisions=frozenset({*asked, *every}), asked=asked)

    @classmethod
    def as_before(cls, uow: UnitOfWork, plan: Plan) -> "Keeping":
        """What a person has let stand already."""
        return cls(decisions=frozenset(unchecked_of(uow, plan)))

    def refuse_if_one_goes(self, impact: CorrectionImpact) -> None:
        for decision in impact.affected:
            text = self.asked.get(decision.decision_id)
            if text is not None:
                reason = impact.reasons[decision.decision_id]
                number = step_number(decision.step_index or 0)
                raise CorrectionRefusedError(
                    f"step {number} ({decision.chosen}) cannot be kept: it {reason.why}",
                    f"leave --keep {text} out; it is done again then",
                )


class CorrectionPreview(Struct, frozen=True, kw_only=True):
    """Nothing was done. `step` is what would take the place of the one that goes, if another was
    given."""

    impact: CorrectionImpact
    files: tuple[RevertedFile, ...]
    step: Step | None = None


class CorrectionResult(Struct, frozen=True, kw_only=True):
    impact: CorrectionImpact
    done: Corrected
    files: tuple[RevertedFile, ...]


class CorrectionQuestion:
    """What a person is asked before anything changes."""

    def __init__(self, impact: CorrectionImpact, look: Callable[[], CorrectionPreview]) -> None:
        self.impact = impact
        self._look = look

    @cached_property
    def preview(self) -> CorrectionPreview:
        return self._look()


Confirm = Callable[[CorrectionQuestion], bool]


class CorrectionService(Struct, frozen=True):
    _runtime: Runtime
    _rollbacks: RollbackService
    _finisher: CorrectionFinisher
    _resume: PlanResumeService
    _actions: ActionReader

    def revert(self, wanted: str, advice: Advice, confirm: Confirm) -> CorrectionResult:
        """Take a decision back with all that stands on it; the plan is queued at its step."""
        found = self._find(wanted)
        with self._runtime.locks.hold(found.plan_id, "correct"):
            held = self._rollbacks.take_up(found.plan_id)
            impact, step = self._guarded(held, found.decision_id, advice)
            question = CorrectionQuestion(impact, lambda: self._look_ahead(held, impact, step))
            if not confirm(question):
                raise DeclinedError("the correction")
            correction = self._correction(impact, advice, step)
            with children_stopped(self._runtime.locks, held, "correct"):
                held, correction = self._finisher.begin(held, correction)
                done = self._finisher.finish(held, correction)
        return CorrectionResult(impact=impact, done=done, files=reverted(done.changed))

    def preview(self, wanted: str, advice: Advice) -> CorrectionPreview:
        """What `revert` would do now; nothing is changed."""
        found = self._find(wanted)
        with self._runtime.locks.hold(found.plan_id, "correct --dry-run"):
            with self._runtime.unit_of_work.reading() as uow:
                held = HeldPlan.of(uow, found.plan_id)
            plan = held.plan
            if plan.rollback_target is not None:
                raise PlanStateError(
                    f"a rollback or correction of plan {plan.plan_id} was interrupted, and is"
                    " finished first",
                    f"agents plan resume {plan.plan_id}",
                )
            impact, step = self._guarded(held, found.decision_id, advice)
            return self._look_ahead(held, impact, step)

    def go_on(self, plan_id: PlanId) -> Plan:
        """Execute what is to be done again.

        A step that now changes what a later one had changed before makes that one be done again
        too, after it.
        """
        plan = self._resume.run(plan_id)
        for _ in plan.action.steps:
            outdated = plan.error.step if plan.error else None
            if outdated is None or plan.error is None or plan.error.code != STEP_OUTDATED:
                break
            advice = Advice(guidance=f"in order: {plan.error.message}", keep=None)
            self.revert(self._step_decision(plan, outdated), advice, lambda _: True)
            plan = self._resume.run(plan_id)
        return plan

    # --- before anything changes ----------------------------------------------------------------

    def _find(self, wanted: str) -> Decision:
        with self._runtime.unit_of_work.reading() as uow:
            return find_decision(uow, wanted)

    def _guarded(
        self, held: HeldPlan, decision_id: DecisionId, advice: Advice
    ) -> tuple[CorrectionImpact, Step | None]:
        plan = held.plan
        refuse_if_settled(plan)
        with self._runtime.unit_of_work.reading() as uow:
            if advice.keep is None:
                keep = Keeping.as_before(uow, plan)
            else:
                keep = Keeping.wanted(uow, plan, advice.keep)
            impact = impact_of(uow, plan, decision_id, keep.decisions)
        keep.refuse_if_one_goes(impact)
        step = None
        if advice.step_file is not None:
            step = self._actions.read_step(advice.step_file, plan.action, _place(impact))
        self._rollbacks.check_restorable(held.resources, impact.target, impact.selection)
        return impact, step

    def _look_ahead(
        self, held: HeldPlan, impact: CorrectionImpact, step: Step | None
    ) -> CorrectionPreview:
        changed = self._rollbacks.compare_only(held, impact.target, impact.selection)
        return CorrectionPreview(impact=impact, files=reverted(changed), step=step)

    # --- small things ---------------------------------------------------------------------------

    def _correction(
        self, impact: CorrectionImpact, advice: Advice, step: Step | None
    ) -> Correction:
        return Correction(
            correction_id=CorrectionId(self._runtime.ids.new()),
            plan_id=impact.plan.plan_id,
            decision_id=impact.decision.decision_id,
            mode=CorrectionMode.REVERT,
            guidance=advice.guidance,
            status=CorrectionStatus.PENDING,
            target_group=impact.target.group_id,
            intervention_id=DecisionId(self._runtime.ids.new()),
            affected=tuple(decision.decision_id for decision in impact.affected),
            kept=tuple(sorted(impact.unchecked)),
            steps=impact.steps,
            restored=impact.restored,
            step_index=impact.decision.step_index,
            replacement=step,
            created_at=self._runtime.clock.now(),
        )

    def _step_decision(self, plan: Plan, index: int) -> DecisionId:
        with self._runtime.unit_of_work.reading() as uow:
            live = [d for d in uow.decisions.of_plan(plan.plan_id) if not d.superseded]
        made = [d for d in live if d.type is not DecisionType.USER_INTERVENTION]
        return next(d.decision_id for d in reversed(made) if d.step_index == index)


def _place(impact: CorrectionImpact) -> int:
    index = impact.decision.step_index
    if index is None:
        raise CorrectionRefusedError(
            f"decision {impact.decision.decision_id} belongs to no step, so that no step can be"
            " put in its place",
            "leave --step-file out, or correct the decision of a step",
        )
    return index


def _step(plan: Plan, done: Mapping[int, DecisionId], text: str) -> int:
    steps = plan.action.steps
    found = [index for index, step in enumerate(steps) if step.name == text]
    if not found and text.isascii() and text.isdecimal():
        found = [index for index in [int(text) - 1] if 0 <= index < len(steps)]
    if len(found) > 1:
        numbers = ", ".join(str(step_number(index)) for index in found)
        raise UsageError(
            f"several steps are called {text!r}", f"say it by number with --keep: {numbers}"
        )
    if not found or found[0] not in done:
        numbers = ", ".join(
            f"{step_number(i)} ({steps[i].name})" for i in sorted(done) if i < len(steps)
        )
        raise UsageError(
            f"no step that has run is called {text!r}", f"--keep takes one of these: {numbers}"
        )
    return found[0]
