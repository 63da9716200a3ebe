"""A plan moves from state to state only by its own methods, and only where that is legal."""

from collections.abc import Callable

import pytest
from domain_builders import ACTION, CODE, LATER, NOW, OTHER_PLAN, a_group, a_plan, stood_at, ulid
from msgspec.structs import fields, replace

from cleveragents.domain.decision import Decision, DecisionType, Position
from cleveragents.domain.errors import (
    ChildApplyError,
    ChildSettledError,
    PlanAppliedError,
    PlanCancelledError,
    PlanStateError,
)
from cleveragents.domain.ids import CheckpointId, DecisionId, GroupId, PlanId
from cleveragents.domain.plan import Phase, Plan, PlanFailure, State
from cleveragents.domain.subplan import ChildOf, MergeOutcome

FAILURE = PlanFailure(message="no", hint="do", code="tool-failed")
FINAL = {State.APPLIED: PlanAppliedError, State.CANCELLED: PlanCancelledError}
PLACES = [
    (Phase.STRATEGIZE, State.QUEUED),
    *((Phase.EXECUTE, state) for state in State if state not in FINAL),
    *((Phase.APPLY, s) for s in (State.PROCESSING, State.CONSTRAINED)),
]
APPLYING = (Phase.APPLY, State.PROCESSING)
EXECUTED = [
    (Phase.EXECUTE, State.COMPLETE),
    APPLYING,
    (Phase.APPLY, State.CONSTRAINED),
]


def changed(before: Plan, after: Plan) -> dict[str, object]:
    """What is different, and nothing else."""
    return {
        field.name: getattr(after, field.name)
        for field in fields(Plan)
        if getattr(before, field.name) != getattr(after, field.name)
    }


def test_a_new_plan_is_queued_with_nothing_done() -> None:
    plan = a_plan()

    assert (plan.phase, plan.state) == (Phase.STRATEGIZE, State.QUEUED)
    assert plan.last_completed_step == -1
    assert plan.head is None
    assert not plan.is_final
    assert not plan.executed


def test_the_first_decision_of_all_says_what_the_plan_is_for() -> None:
    plan = a_plan(attempt=2, timeline=1, seq=4)
    decision_id = DecisionId(ulid(6))

    assert plan.definition(decision_id, "a person said so") == Decision(
        decision_id=decision_id,
        plan_id=plan.plan_id,
        parent_id=None,
        position=Position(timeline=1, seq=4),
        type=DecisionType.PROMPT_DEFINITION,
        question="What shall be done?",
        chosen=ACTION.description,
        rationale="a person said so",
        phase=Phase.STRATEGIZE,
        step_index=None,
        attempt=2,
        created_at=NOW,
    )


def test_a_plan_is_a_value_that_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        a_plan().state = State.APPLIED  # pyright: ignore[reportAttributeAccessIssue]


# --- starting -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("phase", "state"), [p for p in PLACES if p not in EXECUTED])
def test_a_plan_with_steps_left_can_be_started_or_continued(phase: Phase, state: State) -> None:
    plan = a_plan(phase=phase, state=state, error=FAILURE, finished_at=NOW)

    started = plan.start(LATER)

    assert (started.phase, started.state) == (Phase.EXECUTE, State.PROCESSING)
    assert started.error is None
    assert started.finished_at is None
    assert started.started_at == LATER


def test_going_on_keeps_the_time_of_the_first_start() -> None:
    assert a_plan(started_at=NOW).start(LATER).started_at == NOW


@pytest.mark.parametrize(("phase", "state"), EXECUTED)
def test_a_plan_that_has_done_all_its_steps_cannot_be_started(phase: Phase, state: State) -> None:
    plan = a_plan(phase=phase, state=state)

    assert plan.executed
    with pytest.raises(PlanStateError, match=f"{plan.plan_id} has done all its steps") as caught:
        plan.start(NOW)
    assert caught.value.hint == f"agents plan apply {plan.plan_id}"


# --- what is final ------------------------------------------------------------------------------

GUARDED: dict[str, Callable[[Plan], object]] = {
    "start": lambda plan: plan.start(NOW),
    "begin_apply": lambda plan: plan.begin_apply(),
    "cancel": lambda plan: plan.cancel(NOW),
    "refuse_if_final": lambda plan: plan.refuse_if_final(),
}


@pytest.mark.parametrize("state", FINAL)
@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("move", GUARDED)
def test_a_final_plan_does_not_move(move: str, phase: Phase, state: State) -> None:
    plan = a_plan(phase=phase, state=state)

    assert plan.is_final
    assert not plan.executed
    with pytest.raises(FINAL[state], match=plan.plan_id):
        GUARDED[move](plan)


@pytest.mark.parametrize("move", GUARDED)
def test_a_child_that_is_settled_does_not_move(move: str) -> None:
    plan = a_child(MergeOutcome.MERGED)

    with pytest.raises(ChildSettledError, match=plan.plan_id):
        GUARDED[move](plan)


def a_child(outcome: MergeOutcome = MergeOutcome.PENDING) -> Plan:
    top = PlanId(ulid(3))
    link = ChildOf(parent_id=OTHER_PLAN, root_id=top, name="en", outcome=outcome, invalidated=False)
    return a_plan(phase=Phase.EXECUTE, state=State.COMPLETE, child_of=link)


@pytest.mark.parametrize(("phase", "state"), PLACES)
def test_only_applied_and_cancelled_are_final(phase: Phase, state: State) -> None:
    plan = a_plan(phase=phase, state=state)

    plan.refuse_if_final()
    assert not plan.is_final


@pytest.mark.parametrize(("phase", "state"), [p for p in PLACES if p != APPLYING])
def test_every_plan_that_is_not_final_can_be_cancelled(phase: Phase, state: State) -> None:
    plan = a_plan(phase=phase, state=state)

    cancelled = plan.cancel(LATER)

    assert cancelled.is_final
    assert changed(plan, cancelled).keys() <= {"state", "finished_at"}
    assert cancelled.finished_at == LATER


def test_an_apply_that_died_half_way_must_be_finished_first() -> None:
    phase, state = APPLYING
    plan = a_plan(phase=phase, state=state)

    for move in (plan.refuse_if_applying, lambda: plan.cancel(NOW)):
        with pytest.raises(PlanStateError, match=f"{plan.plan_id} was interrupted") as caught:
            move()
        assert f"agents plan apply {plan.plan_id}" in caught.value.hint


@pytest.mark.parametrize(("phase", "state"), [p for p in PLACES if p != APPLYING])
def test_all_other_plans_are_not_applying(phase: Phase, state: State) -> None:
    a_plan(phase=phase, state=state).refuse_if_applying()


# --- the steps ----------------------------------------------------------------------------------


def test_a_step_that_is_done_moves_the_plan_and_the_actor_on() -> None:
    plan = a_plan()

    assert changed(plan, plan.advance(0, {"next_step": 1})) == {
        "last_completed_step": 0,
        "actor_state": {"next_step": 1},
    }


def test_completing_failing_and_interrupting_change_nothing_but_the_state() -> None:
    plan = a_plan().start(NOW)

    assert changed(plan, plan.complete(LATER)) == {
        "state": State.COMPLETE,
        "finished_at": LATER,
    }
    assert changed(plan, plan.fail(FAILURE, LATER)) == {
        "state": State.ERRORED,
        "error": FAILURE,
        "finished_at": LATER,
    }
    assert changed(plan, plan.interrupt()) == {"state": State.QUEUED}


def test_a_plan_that_cannot_even_begin_is_errored_in_execute() -> None:
    refused = a_plan().refused(FAILURE)

    assert (refused.phase, refused.state, refused.error) == (Phase.EXECUTE, State.ERRORED, FAILURE)


def test_a_plan_that_waits_for_a_person_has_begun_nothing() -> None:
    plan = a_plan().start(NOW)

    assert changed(plan, plan.hold(FAILURE)) == {"state": State.QUEUED, "error": FAILURE}


def test_a_step_more_changes_nothing_but_the_action() -> None:
    plan, longer = a_plan(), replace(ACTION, name="longer")

    assert plan.with_action(plan.action) is plan
    assert changed(plan, plan.with_action(longer)) == {"action": longer}
    assert changed(plan, plan.remembering({"head": "m"})) == {"actor_state": {"head": "m"}}


@pytest.mark.parametrize(("phase", "state"), PLACES)
def test_a_plan_that_goes_on_with_a_step_waits_for_it(phase: Phase, state: State) -> None:
    plan = a_plan(phase=phase, state=state, error=FAILURE, finished_at=NOW, last_completed_step=5)

    assert plan.reopened(3, {"head": "m"}) == replace(
        plan,
        phase=Phase.EXECUTE,
        state=State.QUEUED,
        last_completed_step=2,
        actor_state={"head": "m"},
        error=None,
        finished_at=None,
    )


@pytest.mark.parametrize("state", [s for s in State if s not in FINAL])
def test_a_plan_that_was_told_what_helps_waits_to_go_on(state: State) -> None:
    plan = a_plan(phase=Phase.EXECUTE, state=state, error=FAILURE)

    assert plan.advised() == replace(plan, state=State.QUEUED, error=None)
    assert a_plan(error=FAILURE).advised() == a_plan(error=FAILURE), "nothing has begun yet"


def test_each_thing_that_happens_has_a_number_of_its_own() -> None:
    plan = a_plan(timeline=3, seq=7)

    assert plan.here == Position(timeline=3, seq=7)
    assert plan.tick().here == Position(timeline=3, seq=8)


def test_the_head_is_the_checkpoint_that_the_plan_stands_on() -> None:
    head = CheckpointId(ulid(5))

    assert changed(a_plan(), a_plan().at(head)) == {"head": head}


# --- the way back -------------------------------------------------------------------------------


def test_an_intent_to_go_back_can_be_stored_and_given_up() -> None:
    plan = a_plan()
    target, safety = GroupId(ulid(7)), GroupId(ulid(8))

    intending = plan.begin_rollback(target, safety)

    assert changed(plan, intending) == {"rollback_target": target, "safety_group": safety}
    assert intending.abandon_rollback() == plan


def test_single_files_come_back_without_the_plan_moving() -> None:
    only = ("code:a",)
    plan = a_plan(phase=Phase.EXECUTE, state=State.COMPLETE)
    intending = plan.begin_rollback(GroupId(ulid(7)), GroupId(ulid(8)), only)

    assert intending.rollback_only == only
    assert intending.with_files_restored() == plan
    assert intending.restore(a_group(20), 1).rollback_only == ()


@pytest.mark.parametrize("state", [State.PROCESSING, State.ERRORED])
def test_after_single_files_came_back_a_step_that_was_half_done_is_undone(state: State) -> None:
    plan = a_plan(phase=Phase.EXECUTE, state=state, error=FAILURE)
    intending = plan.begin_rollback(GroupId(ulid(7)), GroupId(ulid(8)), ("code:a",))

    assert plan.mid_step
    assert intending.with_files_restored() == replace(plan, state=State.QUEUED, error=None)


def test_a_plan_that_is_corrected_does_the_step_again_as_another_attempt() -> None:
    plan = a_plan(phase=Phase.EXECUTE, state=State.COMPLETE, last_completed_step=5, attempt=2)
    intending = plan.begin_rollback(GroupId(ulid(7)), GroupId(ulid(8)))

    assert intending.corrected(3, {"head": "m"}) == replace(
        plan.reopened(3, {"head": "m"}), attempt=3
    )


@pytest.mark.parametrize(("phase", "state"), PLACES)
def test_going_back_brings_the_plan_to_where_the_group_was_taken(
    phase: Phase, state: State
) -> None:
    target = a_group(
        20,
        last_completed_step=4,
        attempt=2,
        actor_state={"next_step": 5},
        resource_states=(stood_at(CODE, "h"),),
    )
    plan = a_plan(
        phase=phase,
        state=state,
        last_completed_step=9,
        seq=99,
        error=FAILURE,
        started_at=NOW,
        finished_at=LATER,
    ).begin_rollback(target.group_id, GroupId(ulid(8)))

    assert plan.restore(target, 3) == replace(
        plan,
        phase=Phase.EXECUTE,
        state=State.QUEUED,
        last_completed_step=4,
        attempt=2,
        actor_state={"next_step": 5},
        head=target.head,
        timeline=3,
        rollback_target=None,
        safety_group=None,
        error=None,
    )


def test_numbers_are_not_used_again_after_going_back() -> None:
    assert a_plan(seq=99).restore(a_group(20), 1).seq == 99


# --- apply --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("phase", "state"), EXECUTED)
def test_a_plan_that_has_done_all_its_steps_can_be_applied(phase: Phase, state: State) -> None:
    applying = a_plan(phase=phase, state=state, error=FAILURE).begin_apply()

    assert (applying.phase, applying.state) == (Phase.APPLY, State.PROCESSING)
    assert applying.error is None


@pytest.mark.parametrize(("phase", "state"), [p for p in PLACES if p not in EXECUTED])
def test_a_plan_with_steps_left_cannot_be_applied(phase: Phase, state: State) -> None:
    plan = a_plan(phase=phase, state=state)

    told = f"{plan.plan_id} has not done all its steps yet"
    with pytest.raises(PlanStateError, match=told) as caught:
        plan.begin_apply()
    assert caught.value.hint == f"agents plan execute {plan.plan_id}"


def test_an_apply_ends_applied_or_constrained() -> None:
    plan = a_plan(phase=Phase.EXECUTE, state=State.COMPLETE).begin_apply()

    applied = plan.apply({"code": "abc"}, LATER)
    constrained = plan.constrain(FAILURE)

    assert changed(plan, applied) == {
        "state": State.APPLIED,
        "applied": {"code": "abc"},
        "finished_at": LATER,
    }
    assert changed(plan, constrained) == {"state": State.CONSTRAINED, "error": FAILURE}
    assert constrained.executed


def test_a_child_reaches_the_project_only_with_the_plan_at_the_top() -> None:
    plan = a_child()
    assert plan.child_of is not None

    with pytest.raises(ChildApplyError) as caught:
        plan.begin_apply()

    told = f"plan {plan.plan_id} is the child `en` of plan {plan.child_of.parent_id};"
    assert caught.value.message.startswith(told)
    assert caught.value.hint == f"agents plan apply {plan.child_of.root_id}"
