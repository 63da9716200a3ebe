"""A plan in place takes up the next program; what an apply or a cancel says about a plan."""

import pytest
from domain_builders import ACTION, LATER, NOW, a_plan
from msgspec.structs import replace

from cleveragents.domain.action import ActorSpec
from cleveragents.domain.errors import PlanCancelledError, PlanStateError
from cleveragents.domain.plan import Phase, PlanFailure, State

FAILURE = PlanFailure(message="no", hint="do", code="tool-failed")
NEXT = replace(ACTION, name="another", description="the next program")


def test_the_next_program_goes_on_where_the_timeline_is_and_remembers_nothing() -> None:
    plan = a_plan(
        phase=Phase.EXECUTE,
        state=State.ERRORED,
        error=FAILURE,
        last_completed_step=4,
        actor_state={"head": "abc"},
        finished_at=NOW,
    )

    assert plan.taken_up(NEXT) == replace(
        plan,
        action=replace(NEXT, name="demo"),
        state=State.QUEUED,
        error=None,
        actor_state={},
        finished_at=None,
    )


def test_a_timeline_that_is_closed_takes_up_nothing() -> None:
    with pytest.raises(PlanCancelledError):
        a_plan().cancel(NOW).taken_up(NEXT)


def test_who_cancels_a_plan_may_say_why() -> None:
    plan = a_plan()

    assert plan.cancel(LATER, "too slow") == replace(
        plan, state=State.CANCELLED, finished_at=LATER, cancel_reason="too slow"
    )
    assert plan.cancel(LATER).cancel_reason is None


def test_only_what_an_actor_has_done_so_far_can_be_taken_as_it_is() -> None:
    written = a_plan(phase=Phase.EXECUTE, state=State.QUEUED)
    decided = replace(written, action=replace(ACTION, actor=ActorSpec(type="llm")))
    go_on = f"agents plan execute {written.plan_id}"
    told = []
    for plan in (written, decided):
        with pytest.raises(PlanStateError) as caught:
            plan.begin_apply()
        told.append(caught.value.hint)

    assert told == [
        go_on,
        f"take what is there with `agents apply --as-it-is {written.plan_id}`,"
        f" or go on with `{go_on}`",
    ]
