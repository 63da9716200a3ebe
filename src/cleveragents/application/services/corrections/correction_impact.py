"""What correcting a decision comes to: may it be done, what goes with it, what stays.

What: the group to go back to, the decisions that go, the paths that go back, the steps to do again.
In which order: refusals; the first group that was made before the decision's own step; what depends
on the decision (`domain/affected.py`); validations that judged a result after it; the children.
Why: going back loses only what was changed after that group, so only that is looked for in paths.
A validation goes whatever it read: the result that it judged is no longer there.
What is not guaranteed: that all of what goes was wrong. What nothing proves to be independent goes
too, unless a person keeps it; then it is unchecked, and told so until it is done again.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.application.services.execute.run_state import RunState, deeds_of, successes
from cleveragents.domain.affected import AffectedSet, History, Reason
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointReason
from cleveragents.domain.correction import Correction
from cleveragents.domain.decision import Decision, DecisionType
from cleveragents.domain.errors import CorrectionRefusedError
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.selection import Selection

_JUDGING = Reason(why="judges the result")
# Taken before the step of the decision did anything.
_BEFORE = (CheckpointReason.DECISION, CheckpointReason.ON_TOOL_WRITE)


class CorrectionImpact(Struct, frozen=True, kw_only=True):
    """`affected` goes, `kept` are the steps after the decision that stay as they are.

    `reasons` has one for each that goes, and for each that a person keeps although nothing proves
    that it still holds: those are unchecked from now on.
    """

    plan: Plan
    decision: Decision
    target: CheckpointGroup
    affected: tuple[Decision, ...]
    kept: tuple[Decision, ...]
    steps: tuple[int, ...]
    restored: Mapping[str, tuple[str, ...] | None]
    reasons: Mapping[DecisionId, Reason]
    unchecked: frozenset[DecisionId] = frozenset()
    child_plans: int = 0

    @property
    def selection(self) -> Selection:
        return selection_of(self.restored)


def selection_of(restored: Mapping[str, tuple[str, ...] | None]) -> Selection:
    return Selection(paths={name: paths or () for name, paths in restored.items()})


def impact_of(
    uow: UnitOfWork, plan: Plan, decision_id: DecisionId, keep: Collection[DecisionId] = ()
) -> CorrectionImpact:
    """Raises CorrectionRefusedError with the reason; nothing is changed.

    Of those to `keep`, what is proven to depend on the decision goes all the same.
    """
    decision = uow.decisions.get(decision_id)
    _refuse_the_impossible(plan, decision)
    target = _target(uow.checkpoints.of_decision(plan.plan_id, decision_id), decision)
    course = RunState.of(uow, plan)
    history = _history(uow, plan, course)
    found = history.affected_by(decision_id, since=target.position.seq, keep=keep)
    judging = {d.decision_id: _JUDGING for d in course.decisions if _judges(d, decision)}
    gone = {**found.decisions, **judging}
    affected = tuple(d for d in course.decisions if d.decision_id in gone)
    return CorrectionImpact(
        plan=plan,
        decision=decision,
        target=target,
        affected=affected,
        kept=_kept(course, decision, gone),
        steps=_steps(affected, course),
        restored=found.restored,
        reasons={**found.kept, **gone},
        unchecked=frozenset(found.kept.keys() - judging.keys()),
        child_plans=_children(uow, plan.plan_id, found),
    )


def actor_state_for(
    uow: UnitOfWork, plan: Plan, correction: Correction, target: CheckpointGroup
) -> Mapping[str, Any]:
    """Where the actor stood before the first of the steps that the correction does again."""
    first = correction.steps[0] if correction.steps else plan.last_completed_step + 1
    for decision in uow.decisions.of_plan(plan.plan_id):
        if decision.decision_id not in correction.affected:
            continue
        told = decision.context
        if first in (decision.step_index, told.first_step) and told.actor_state is not None:
            return told.actor_state
    return target.actor_state


def refuse_if_settled(plan: Plan) -> None:
    """Nothing more can be done to a plan that is over, or whose result is its parent's."""
    plan.refuse_if_final()
    plan.refuse_if_applying()
    if plan.action.in_place:
        raise CorrectionRefusedError(
            f"plan {plan.plan_id} works in place, where nothing is done again by itself",
            "take it back with `agents undo`, and run the program again",
        )
    if plan.child_of is not None:
        plan.child_of.refuse_if_settled(plan.plan_id)


def refuse_if_superseded(plan: Plan, decision: Decision) -> None:
    if decision.superseded:
        raise CorrectionRefusedError(
            f"{decision.decision_id} no longer counts: a rollback or another correction has taken"
            " its place",
            f"correct one that counts (agents plan tree {plan.plan_id}), or go back to before that"
            f" with `agents plan rollback {plan.plan_id}`",
        )


def _refuse_the_impossible(plan: Plan, decision: Decision) -> None:
    if decision.type is DecisionType.PROMPT_DEFINITION:
        raise CorrectionRefusedError(
            f"{decision.decision_id} is the plan's own task, which everything stands on",
            "make a new plan with `agents plan use`, or correct one of its decisions",
        )
    refuse_if_superseded(plan, decision)
    if not plan.action.rollback_policy.enabled:
        raise CorrectionRefusedError(
            f"plan {plan.plan_id} keeps no checkpoints (rollback_policy.enabled is false), so"
            " there is nothing to go back to",
            "add to the plan instead: agents plan correct --mode append",
        )


def _target(groups: Iterable[CheckpointGroup], decision: Decision) -> CheckpointGroup:
    for group in groups:
        if group.reason in _BEFORE:
            return group
    raise CorrectionRefusedError(
        f"the checkpoint before decision {decision.decision_id} was pruned",
        "correct a later decision, or keep more with"
        " `agents config set sandbox.checkpoint.max-checkpoints-per-plan N`",
    )


def _history(uow: UnitOfWork, plan: Plan, course: RunState) -> History:
    return History(
        decisions=course.decisions,
        dependencies=uow.decisions.dependencies(plan.plan_id),
        deeds=deeds_of(successes(uow.tool_calls.of_plan(plan.plan_id))),
    )


def _steps(affected: Iterable[Decision], course: RunState) -> tuple[int, ...]:
    """Those to be done again; a correction that is corrected itself brings its own."""
    gone = {decision.decision_id for decision in affected}
    found = {d.step_index for d in affected if d.step_index is not None}
    for correction in course.corrections:
        if correction.intervention_id in gone:
            found |= {i for i in correction.steps if course.done.get(i) in (None, *gone)}
    return tuple(sorted(found))


def _judges(decision: Decision, corrected: Decision) -> bool:
    """A validation has judged a result that is no longer there."""
    later = decision.position.seq > corrected.position.seq
    return later and decision.type is DecisionType.VALIDATION_RESPONSE


def _comes_later(other: Decision, decision: Decision) -> bool:
    """In the order of the steps; those before it may have been done again after it."""
    if other.step_index is not None and decision.step_index is not None:
        return other.step_index > decision.step_index
    return other.position.seq > decision.position.seq


def _kept(
    course: RunState, decision: Decision, gone: Collection[DecisionId]
) -> tuple[Decision, ...]:
    return tuple(
        other
        for other in course.decisions
        if _comes_later(other, decision)
        and other.decision_id not in gone
        and other.type is not DecisionType.USER_INTERVENTION
    )


def _children(uow: UnitOfWork, plan_id: PlanId, found: AffectedSet) -> int:
    """Child plans that go too. Raises CorrectionRefusedError if one of them is applied."""
    number = 0
    for child in uow.subplans.of_parent(plan_id):
        if child.counts and child.decision_id in found.decisions:
            _refuse_if_applied(uow, child.plan_id)
            number += 1
    return number


def _refuse_if_applied(uow: UnitOfWork, plan_id: PlanId) -> None:
    if uow.plans.get(plan_id).state is State.APPLIED:
        raise CorrectionRefusedError(
            f"child plan {plan_id} is applied, and cannot be taken back with its parent",
            "undo it in the project itself, for example with `git revert`, or use --mode append",
        )
    for child in uow.subplans.of_parent(plan_id):
        _refuse_if_applied(uow, child.plan_id)
