"""Ages and dates as people type them, and what is said about those that are none."""

from datetime import UTC, datetime, timedelta

import pytest
from domain_builders import NOW

from cleveragents.domain.ages import age, moment
from cleveragents.domain.errors import UsageError


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90m", timedelta(minutes=90)),
        (" 12 H ", timedelta(hours=12)),
        ("14d", timedelta(days=14)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_an_age_is_a_number_with_its_unit(text: str, length: timedelta) -> None:
    assert age(text, "--older-than") == length
    assert moment(text, "--since", NOW) == NOW - length


def test_a_date_may_say_its_zone_and_is_told_in_that_of_the_record() -> None:
    found = moment("2025-03-01T14:30:00+02:00", "--since", NOW)

    assert found == datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
    assert found.tzinfo is UTC


@pytest.mark.parametrize("text", ["", "14", "d", "14 days", "-1d", "123456d"])
def test_what_is_no_age_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        age(text, "--older-than")

    assert caught.value.message == (
        f"--older-than {text!r} is not an age such as 90m, 12h, 14d or 2w"
    )
    assert caught.value.hint == "for example: --older-than 14d"


@pytest.mark.parametrize("text", ["yesterday", "2025-13-01", "0001-01-01T00:00:00+10:00"])
def test_what_is_neither_an_age_nor_a_date_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        moment(text, "--since", NOW)

    assert caught.value.message == (
        f"--since {text!r} is neither an age such as 90m, 12h, 14d or 2w,"
        " nor a date such as 2026-07-14"
    )
    assert caught.value.hint == "for example: --since 14d"
