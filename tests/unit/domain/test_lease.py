"""Who may write a plan: only whoever raised its epoch last, or that of a plan above it."""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents.domain.errors import PlanOvertakenError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.lease import PlanNotHeldError, refuse_overtaken

ROOT, CHILD = PlanId("01ARZ3NDEKTSV4RRFFQ69G5FA1"), PlanId("01ARZ3NDEKTSV4RRFFQ69G5FA2")


def test_whoever_raised_the_epoch_last_may_write() -> None:
    refuse_overtaken(ROOT, {ROOT: 3}, {ROOT: 3})


@pytest.mark.parametrize("stored", [0, 2, 4])
def test_another_epoch_on_record_refuses_whoever_held_the_plan(stored: int) -> None:
    with pytest.raises(PlanOvertakenError) as caught:
        refuse_overtaken(ROOT, {ROOT: stored}, {ROOT: 3})
    assert ROOT in caught.value.message
    assert f"agents plan status {ROOT}" in caught.value.hint


def test_a_plan_that_was_never_held_is_not_written() -> None:
    for held in ({}, {ROOT: None}):
        with pytest.raises(PlanNotHeldError, match=ROOT):
            refuse_overtaken(ROOT, {ROOT: 0}, held)


def test_whoever_holds_the_plan_above_writes_its_children() -> None:
    refuse_overtaken(CHILD, {CHILD: 7, ROOT: 2}, {CHILD: None, ROOT: 2})


def test_a_child_is_not_ours_any_more_when_the_plan_above_it_is_not() -> None:
    with pytest.raises(PlanOvertakenError) as caught:
        refuse_overtaken(CHILD, {CHILD: 7, ROOT: 3}, {CHILD: 7, ROOT: 2})
    assert ROOT in caught.value.message


@dataclass
class Process:
    """What one process knows: the epochs it raised, and may have lost without noticing."""

    held: dict[PlanId, int | None] = field(default_factory=dict[PlanId, int | None])


moves = st.lists(
    st.tuples(st.sampled_from(["take", "let go", "write"]), st.integers(0, 2), st.booleans()),
    max_size=40,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(moves)
def test_of_all_processes_only_the_last_to_take_a_plan_can_write_it(
    happened: list[tuple[str, int, bool]],
) -> None:
    """Whatever the locks themselves do: here several may hold one plan at the same time."""
    stored = {CHILD: 0, ROOT: 0}
    processes = [Process(), Process(), Process()]
    last: dict[PlanId, int | None] = {CHILD: None, ROOT: None}
    for what, number, is_child in happened:
        process, plan = processes[number], CHILD if is_child else ROOT
        if what == "take":
            stored[plan] += 1
            process.held[plan] = stored[plan]
            last[plan] = number
        elif what == "let go":
            process.held.pop(plan, None)
        else:
            line = stored if is_child else {ROOT: stored[ROOT]}
            ours = [above for above in line if above in process.held]
            expected = bool(ours) and all(last[above] == number for above in ours)
            assert _may_write(plan, line, process) == expected


def _may_write(plan: PlanId, line: dict[PlanId, int], process: Process) -> bool:
    try:
        refuse_overtaken(plan, line, process.held)
    except (PlanOvertakenError, PlanNotHeldError):
        return False
    return True
