"""Time is UTC, and ids sort in the order in which they were made, whatever the clock does."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.clock import SystemClock, UlidSource

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def milliseconds(ulid: str) -> int:
    value = 0
    for character in ulid[:10]:
        value = value * 32 + ALPHABET.index(character)
    return value


def test_the_clock_is_in_utc() -> None:
    now = SystemClock().now()

    assert now.tzinfo is UTC
    assert abs(now - datetime.now(UTC)) < timedelta(seconds=5)


def test_an_id_is_a_ulid_of_the_present_moment() -> None:
    before = time.time_ns() // 1_000_000
    made = UlidSource().new()
    after = time.time_ns() // 1_000_000

    assert PlanId(made) == made
    assert before <= milliseconds(made) <= after


def test_ids_of_one_process_are_unique_and_in_order() -> None:
    source = UlidSource()

    made = [source.new() for _ in range(5000)]

    assert made == sorted(set(made))


@pytest.mark.parametrize("drift", [0, -1_000_000_000, -(10**15)])
def test_ids_go_up_although_the_clock_stands_still_or_goes_back(
    monkeypatch: pytest.MonkeyPatch, drift: int
) -> None:
    moment = time.time_ns()
    source = UlidSource()
    made: list[str] = []

    for turn in range(50):
        monkeypatch.setattr(time, "time_ns", lambda turn=turn: moment + turn * drift)
        made.append(source.new())

    assert made == sorted(set(made))


def test_two_processes_do_not_make_the_same_ids() -> None:
    one, two = UlidSource(), UlidSource()

    assert not {one.new() for _ in range(200)} & {two.new() for _ in range(200)}
