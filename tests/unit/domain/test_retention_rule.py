"""Too many, too old, too large: the oldest groups go, but never one that somebody needs."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from domain_builders import NOW, ulid
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.ids import GroupId
from cleveragents.domain.retention import (
    WITHIN,
    CheckpointRetentionPolicy,
    GroupOutline,
    RetentionDecision,
    StateCounts,
    in_words,
)

DAY = timedelta(days=1)


def outline(
    number: int,
    *,
    by_hand: bool = False,
    age: timedelta = DAY,
    size: int = 0,
    state: int | None = None,
    label: str = "",
) -> GroupOutline:
    """In a state of its own, unless it is said which."""
    return GroupOutline(
        group_id=GroupId(ulid(number)),
        label=label or f"group {number}",
        state_hash=f"state {number if state is None else state}",
        labelled_by_hand=by_hand,
        created_at=NOW - age,
        size_bytes=size,
    )


@dataclass(frozen=True)
class Case:
    groups: list[GroupOutline]
    pinned: dict[GroupId, str]
    rule: CheckpointRetentionPolicy

    def decided(self, now: datetime = NOW) -> RetentionDecision:
        return self.rule.decide(self.groups, pinned=self.pinned, now=now)

    @property
    def order(self) -> list[GroupId]:
        return [group.group_id for group in self.groups]

    def needed(self) -> set[GroupId]:
        by_hand = {group.group_id for group in self.groups if group.labelled_by_hand}
        return by_hand | set(self.pinned) | {*self.order[:1], *self.order[-1:]}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    marks = draw(st.lists(st.sampled_from(["", "", "", "hand", "pin", "both"]), max_size=25))
    alike = draw(st.integers(1, 4))
    groups = [
        outline(
            number,
            state=number // alike,
            by_hand=mark in ("hand", "both"),
            # Also from the future: the clock was put back in between.
            age=timedelta(hours=draw(st.integers(-50, 100))),
            size=draw(st.integers(0, 100)),
        )
        for number, mark in enumerate(marks)
    ]
    pinned = {
        group.group_id: "pinned"
        for group, mark in zip(groups, marks, strict=True)
        if mark in ("pin", "both")
    }
    rule = CheckpointRetentionPolicy(
        max_states=draw(st.integers(min_value=1, max_value=30)),
        max_age=draw(st.none() | st.integers(0, 90).map(lambda hours: timedelta(hours=hours))),
        max_total_bytes=draw(st.integers(0, 800)),
    )
    return Case(groups, pinned, rule)


@given(cases())
def test_what_somebody_needs_always_stays(case: Case) -> None:
    decision = case.decided()

    assert not case.needed() & set(decision.removed)
    assert case.needed() <= set(decision.kept)


@given(cases())
def test_afterwards_every_limit_holds_or_everything_left_is_needed(case: Case) -> None:
    decision = case.decided()

    spare = [g for g in case.groups if decision.kept.get(g.group_id) == WITHIN]
    if case.rule.max_age is not None:
        assert all(NOW - group.created_at <= case.rule.max_age for group in spare)
    # A state that something needed is in stays with all its groups, which cost nothing more.
    states = {g.state_hash for g in case.groups if g.group_id in decision.kept}
    bound = {g.state_hash for g in case.groups if g.group_id in case.needed()}
    assert len(states) - 1 <= case.rule.max_states or not states - bound
    left = sum(g.size_bytes for g in case.groups if g.group_id in decision.kept)
    free = [g for g in spare if g.size_bytes and g.state_hash not in bound]
    assert not case.rule.max_total_bytes or left <= case.rule.max_total_bytes or not free


@given(cases())
def test_nothing_goes_without_a_limit_that_it_is_beyond(case: Case) -> None:
    case = Case(case.groups, case.pinned, CheckpointRetentionPolicy(max_states=24))

    assert case.decided().removed == {}


@given(cases())
def test_of_those_that_are_too_many_the_oldest_go(case: Case) -> None:
    rule = CheckpointRetentionPolicy(max_states=case.rule.max_states)
    case = Case(case.groups, case.pinned, rule)
    decision = case.decided()

    assert list(decision.removed) == [key for key in case.order if key in decision.removed]
    bound = {g.state_hash for g in case.groups if g.group_id in case.needed()}
    free = [g.group_id for g in case.groups if g.state_hash not in bound]
    gone = [key in decision.removed for key in free]
    assert gone == sorted(gone, reverse=True)


@given(cases())
def test_of_one_state_all_go_or_none(case: Case) -> None:
    rule = CheckpointRetentionPolicy(max_states=case.rule.max_states)
    removed = Case(case.groups, case.pinned, rule).decided().removed
    for state in {group.state_hash for group in case.groups}:
        same = [g.group_id in removed for g in case.groups if g.state_hash == state]
        assert len(set(same)) == 1


@given(cases())
def test_counting_tells_when_nobody_need_look(case: Case) -> None:
    rule = CheckpointRetentionPolicy(max_states=case.rule.max_states)
    found = Counter(group.state_hash for group in case.groups)
    counts = StateCounts(states=len(found), alike=max(found.values(), default=0))
    if rule.allows(counts):
        assert Case(case.groups, case.pinned, rule).decided().removed == {}


@given(cases())
def test_every_group_either_stays_or_goes_and_always_for_a_reason(case: Case) -> None:
    decision = case.decided()

    assert set(decision.kept) | set(decision.removed) == set(case.order)
    assert not set(decision.kept) & set(decision.removed)
    assert all(decision.kept.values())
    assert all(decision.removed.values())


@given(cases())
def test_a_clock_that_went_back_makes_no_group_old(case: Case) -> None:
    before_all_of_them = NOW - timedelta(hours=200)
    rule = CheckpointRetentionPolicy(
        max_states=case.rule.max_states, max_total_bytes=case.rule.max_total_bytes
    )
    ageless = Case(case.groups, case.pinned, rule)

    assert case.decided(before_all_of_them) == ageless.decided()


def test_a_group_from_the_future_is_young() -> None:
    groups = [outline(number, age=-1000 * DAY) for number in range(5)]
    rule = CheckpointRetentionPolicy(max_states=5, max_age=timedelta(seconds=1))

    assert rule.decide(groups, pinned={}, now=NOW).removed == {}


def test_the_reasons_are_told_apart() -> None:
    groups = [
        outline(0),
        outline(1, age=40 * DAY),
        outline(2, by_hand=True, age=40 * DAY),
        outline(3),
        outline(4),
        outline(5, size=600),
        outline(6),
        outline(7, size=500),
        outline(8),
    ]
    rule = CheckpointRetentionPolicy(max_states=6, max_age=30 * DAY, max_total_bytes=1000)

    decision = rule.decide(groups, pinned={groups[3].group_id: "it is needed"}, now=NOW)

    assert decision.removed == {
        groups[1].group_id: "older than 30 days",
        groups[4].group_id: "more than 6 states, and among the oldest",
        groups[5].group_id: "more than 1000 bytes, and among the oldest",
        groups[6].group_id: "more than 1000 bytes, and among the oldest",
    }
    assert decision.kept == {
        groups[0].group_id: "the first",
        groups[2].group_id: "labelled by hand",
        groups[3].group_id: "it is needed",
        groups[7].group_id: WITHIN,
        groups[8].group_id: "the most recent",
    }


@pytest.mark.parametrize(
    "rule",
    [
        CheckpointRetentionPolicy(max_states=4),
        CheckpointRetentionPolicy(max_states=9, max_age=DAY),
        CheckpointRetentionPolicy(max_states=9, max_total_bytes=30),
    ],
)
def test_up_to_the_limit_nothing_goes(rule: CheckpointRetentionPolicy) -> None:
    groups = [outline(n, size=size) for n, size in enumerate([10, 0, 10, 0, 10])]

    assert rule.decide(groups, pinned={}, now=NOW).removed == {}


def test_where_the_plan_is_does_not_count() -> None:
    groups = [outline(number) for number in range(6)]
    rule = CheckpointRetentionPolicy(max_states=4)

    assert rule.decide(groups, pinned={}, now=NOW).removed.keys() == {groups[1].group_id}


def test_a_state_that_came_back_is_as_young_as_its_last_group() -> None:
    groups = [outline(0), outline(1), outline(2), outline(3, state=1), outline(4)]
    rule = CheckpointRetentionPolicy(max_states=2)

    assert rule.decide(groups, pinned={}, now=NOW).removed.keys() == {groups[2].group_id}


def test_what_repeats_itself_without_end_goes_but_no_other_name_does() -> None:
    """A step that fails each time in the same way changes nothing, so that one state would have
    ever more groups."""
    groups = [outline(0, state=0), outline(1, state=0, label="decision")]
    groups += [outline(number, state=0, label="error") for number in range(2, 9)]
    rule = CheckpointRetentionPolicy(max_states=5)

    removed = rule.decide(groups, pinned={groups[2].group_id: "needed"}, now=NOW).removed

    assert list(removed) == [group.group_id for group in groups[3:7]]
    assert set(removed.values()) == {"a newer one of the same name holds the same state"}


def test_what_is_too_large_goes_until_the_rest_is_just_allowed() -> None:
    groups = [outline(n, size=10) for n in range(5)]
    rule = CheckpointRetentionPolicy(max_states=9, max_total_bytes=40)

    assert rule.decide(groups, pinned={}, now=NOW).removed.keys() == {groups[1].group_id}


def test_what_shares_the_bytes_of_one_that_stays_costs_nothing_and_stays() -> None:
    groups = [outline(0), outline(1), outline(2, size=10), outline(3), outline(4, size=10)]
    rule = CheckpointRetentionPolicy(max_states=9, max_total_bytes=10)

    removed = rule.decide(groups, pinned={}, now=NOW).removed

    assert list(removed) == [groups[2].group_id, groups[3].group_id]


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(days=1), "1 day"),
        (timedelta(days=30), "30 days"),
        (timedelta(hours=36), "36 hours"),
        (timedelta(minutes=90), "90 minutes"),
        (timedelta(seconds=61), "61 seconds"),
    ],
)
def test_an_age_is_told_in_the_largest_unit_that_comes_out_even(age: timedelta, words: str) -> None:
    assert in_words(age) == words


@pytest.mark.parametrize(
    ("states", "alike", "room"),
    [(1, 1, 2), (3, 1, 1), (3, 2, 1), (4, 2, 0), (2, 3, 0), (5, 1, -1), (1, 4, -1)],
)
def test_so_many_groups_can_be_added_before_one_might_go(
    states: int, alike: int, room: int
) -> None:
    """The state where the plan is does not count, and a name may be there as often as a state."""
    rule = CheckpointRetentionPolicy(max_states=3)
    counts = StateCounts(states=states, alike=alike)

    assert (rule.room(counts), rule.allows(counts)) == (room, room >= 0)
