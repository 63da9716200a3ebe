"""Which plans a clean-up takes, and what is known to be lost with one."""

from datetime import timedelta

import pytest
from domain_builders import NOW, a_plan
from msgspec.structs import replace

from cleveragents.domain.holdings import PlanHoldings, is_due, last_touched
from cleveragents.domain.ids import PlanId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.subplan import ChildOf, MergeOutcome

DAY = timedelta(days=1)
AGE = 14 * DAY
MADE = NOW - 30 * DAY


def plan(state: State, **more: object) -> Plan:
    found = a_plan(phase=Phase.EXECUTE, state=state, created_at=MADE)
    return replace(found, **more)


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("unapplied", [False, True])
def test_only_what_is_over_goes_unless_more_is_asked_for(state: State, unapplied: object) -> None:
    over = state in (State.APPLIED, State.CANCELLED)
    open_ = state not in (State.APPLIED, State.CANCELLED, State.PROCESSING)
    expected = over or (bool(unapplied) and open_)
    found = is_due(plan(state), MADE, NOW, AGE, unapplied=bool(unapplied))
    assert found is expected


def test_what_is_younger_stays() -> None:
    cancelled = plan(State.CANCELLED)
    assert not is_due(cancelled, NOW - AGE + timedelta(seconds=1), NOW, AGE, unapplied=True)
    assert is_due(cancelled, NOW - AGE, NOW, AGE, unapplied=False)


def test_a_child_goes_with_its_parent_and_never_by_itself() -> None:
    child = ChildOf(
        parent_id=PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        root_id=PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        name="en",
        outcome=MergeOutcome.MERGED,
        invalidated=False,
    )
    assert not is_due(plan(State.CANCELLED, child_of=child), MADE, NOW, AGE, unapplied=True)


def test_a_plan_that_is_over_is_as_old_as_its_end_and_others_as_the_last_that_happened() -> None:
    ended = plan(State.APPLIED, finished_at=NOW - 3 * DAY)
    assert last_touched(ended, NOW) == NOW - 3 * DAY
    waiting = plan(State.QUEUED, started_at=NOW - 20 * DAY, finished_at=None)
    assert last_touched(waiting, None) == NOW - 20 * DAY
    assert last_touched(waiting, NOW - 2 * DAY) == NOW - 2 * DAY
    assert last_touched(plan(State.QUEUED), None) == MADE
    failed = plan(State.ERRORED, finished_at=NOW - 3 * DAY)
    assert last_touched(failed, NOW) == NOW


def test_what_could_not_be_compared_is_precious() -> None:
    assert not PlanHoldings(plan=plan(State.CANCELLED)).is_precious
    assert PlanHoldings(plan=plan(State.CANCELLED), lost={"code": ("a", "b")}).lost_files == 2
    assert PlanHoldings(plan=plan(State.CANCELLED), unknown={"code": "gone"}).is_precious
