"""An apply on record: how long it can be taken back, and what an undo leaves on it."""

from datetime import timedelta

import pytest
from domain_builders import LATER, NOW, PLAN
from msgspec.structs import replace

from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.apply import trespassers
from cleveragents.domain.changes import ChangeKind, FileDiff, ResourceDiff

WAYS = {"code": {"commit": "abc"}}
BACK = {"code": {"commit": "def"}}
APPLIED = AppliedChange(plan_id=PLAN, side=ApplySide.AFTER, until=LATER, changed_at=NOW, ways=WAYS)
INSTANT = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("change", "in_time", "can_move", "is_due"),
    [
        (APPLIED, True, True, False),
        (APPLIED, False, False, True),
        (APPLIED.begin(BACK), True, True, False),
        (APPLIED.begin(BACK), False, True, False),
        (APPLIED.free(), True, False, True),
        (APPLIED.free(), False, False, True),
        (APPLIED.begin(BACK).free(), True, False, False),
    ],
)
def test_an_apply_moves_until_its_time_is_over_and_one_that_has_begun_is_finished_however_late(
    change: AppliedChange, *, in_time: bool, can_move: bool, is_due: bool
) -> None:
    now = LATER - INSTANT if in_time else LATER

    assert change.can_move(now) is can_move
    assert change.is_due(now) is is_due


def test_an_undo_that_has_arrived_is_where_it_led_over_the_way_it_took() -> None:
    assert APPLIED.begin(BACK).arrived(LATER) == AppliedChange(
        plan_id=PLAN, side=ApplySide.BEFORE, until=LATER, changed_at=LATER, ways=BACK
    )


def test_an_undo_that_is_withdrawn_leaves_the_apply_as_it_was() -> None:
    begun = APPLIED.begin(BACK)

    assert (begun.side, begun.heading, begun.under_way) == (ApplySide.AFTER, ApplySide.BEFORE, BACK)
    assert begun.withdrawn() == APPLIED


def test_what_has_not_begun_arrives_nowhere() -> None:
    assert APPLIED.arrived(LATER) == APPLIED


def test_a_redo_leads_back_to_the_result() -> None:
    undone = APPLIED.begin(BACK).arrived(LATER)

    assert undone.begin(WAYS).arrived(LATER) == replace(APPLIED, changed_at=LATER)


@pytest.mark.parametrize(
    ("path", "in_the_way"),
    [("docs", True), ("docs/api", True), ("docs/api/x", False), ("doc", False), ("src", False)],
)
def test_a_change_that_takes_the_place_of_what_is_left_alone_would_reach_it(
    path: str, *, in_the_way: bool
) -> None:
    file = FileDiff(path=path, kind=ChangeKind.ADDED, insertions=1, deletions=0)

    found = trespassers(
        "/project", ResourceDiff(files=(file,)), ["/elsewhere", "/project/docs/api"]
    )

    assert found == ([f"/project/{path}"] if in_the_way else [])
