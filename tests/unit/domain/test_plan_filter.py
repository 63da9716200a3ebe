"""Which plans a list shows, and how long ago is typed."""

from datetime import UTC, datetime, timedelta

import pytest
from domain_builders import LATER, NOW, a_plan

from cleveragents.domain.ages import age, moment
from cleveragents.domain.errors import UsageError
from cleveragents.domain.plan import Phase, State
from cleveragents.domain.plan_filter import EVERY_PLAN, PlanFilter

FAILED = a_plan(phase=Phase.EXECUTE, state=State.ERRORED, created_at=NOW)


@pytest.mark.parametrize(
    ("wanted", "admitted"),
    [
        (EVERY_PLAN, True),
        (PlanFilter(states=[State.ERRORED]), True),
        (PlanFilter(states=[State.COMPLETE, State.ERRORED]), True),
        (PlanFilter(states=[State.COMPLETE]), False),
        (PlanFilter(phases=[Phase.EXECUTE], states=[State.ERRORED]), True),
        (PlanFilter(phases=[Phase.APPLY], states=[State.ERRORED]), False),
        (PlanFilter(actions=["demo"]), True),
        (PlanFilter(actions=["Demo"]), False),
        (PlanFilter(since=NOW), True),
        (PlanFilter(since=LATER), False),
    ],
)
def test_a_plan_is_shown_if_it_is_all_that_was_asked_for(
    wanted: PlanFilter, admitted: object
) -> None:
    assert wanted.admits(FAILED) is admitted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14d", timedelta(days=14)),
        ("12h", timedelta(hours=12)),
        ("90m", timedelta(minutes=90)),
        ("2w", timedelta(weeks=2)),
        (" 3 D ", timedelta(days=3)),
        ("0d", timedelta(0)),
    ],
)
def test_an_age_has_a_number_and_a_unit(text: str, expected: timedelta) -> None:
    assert age(text, "--older-than") == expected


@pytest.mark.parametrize("text", ["", "14", "d", "-1d", "1.5d", "14 days", "999999d", "١d"])
def test_what_is_no_age_is_refused_by_the_name_of_the_option(text: str) -> None:
    with pytest.raises(UsageError, match="--older-than"):
        age(text, "--older-than")


def test_a_moment_is_an_age_before_now_or_a_date() -> None:
    assert moment("2h", "--since", NOW) == NOW - timedelta(hours=2)
    assert moment("2025-02-28T10:00+00:00", "--since", NOW) == datetime(2025, 2, 28, 10, tzinfo=UTC)
    local = datetime(2025, 2, 28).astimezone()
    assert moment("2025-02-28", "--since", NOW) == local
    for text in ("soon", "2025-02-30", ""):
        with pytest.raises(UsageError, match="--since"):
            moment(text, "--since", NOW)
