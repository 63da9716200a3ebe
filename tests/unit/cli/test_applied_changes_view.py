"""What people and programs are told of an apply that can be taken back."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from cleveragents.cli.views.applied_changes import kept, sentences
from cleveragents.domain.applied import AppliedChange, ApplySide
from cleveragents.domain.ids import PlanId

ID = "01J0000000000000000000P1AN"
NOW = datetime(2026, 1, 31, 14, 56, tzinfo=UTC)
APPLIED = AppliedChange(
    plan_id=PlanId(ID), side=ApplySide.AFTER, until=NOW + timedelta(days=7), changed_at=NOW
)
UNDONE = replace(APPLIED, side=ApplySide.BEFORE)
LATE = NOW + timedelta(days=8)


def test_of_an_apply_that_kept_nothing_nothing_is_told() -> None:
    assert sentences(None, NOW) == []


def test_until_when_it_can_be_undone_and_then_redone() -> None:
    assert sentences(APPLIED, NOW) == [
        f"the apply can be undone until 2026-02-07 14:56 UTC: agents undo --plan {ID}"
    ]
    assert sentences(UNDONE, NOW) == [
        f"the apply is undone; it can be redone until 2026-02-07 14:56 UTC: agents redo --plan {ID}"
    ]


def test_later_only_what_became_of_it_is_told() -> None:
    assert sentences(APPLIED, LATE) == []
    assert sentences(UNDONE, LATE) == ["the apply was undone"]
    assert kept(UNDONE, LATE) == {"state": "undone", "until": None, "next": None}


@pytest.mark.parametrize(("began", "word"), [(APPLIED, "undo"), (UNDONE, "redo")])
def test_what_was_interrupted_can_be_finished_however_late(began: AppliedChange, word: str) -> None:
    cut_off = began.begin({})
    assert sentences(cut_off, LATE) == [
        f"the {word} of the apply was interrupted; finish it: agents {word} --plan {ID}"
    ]
    told = kept(cut_off, LATE)
    assert (told["state"], told["next"]) == ("interrupted", f"agents {word} --plan {ID}")
    assert cut_off.withdrawn() == began
    assert cut_off.arrived(LATE).side is began.side.other


def test_what_has_not_begun_has_not_arrived() -> None:
    assert APPLIED.arrived(LATE) == APPLIED
    assert (APPLIED.is_due(NOW), APPLIED.is_due(LATE), APPLIED.free().is_due(NOW)) == (
        False,
        True,
        True,
    )
