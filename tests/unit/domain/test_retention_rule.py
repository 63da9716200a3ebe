"""Too many checkpoint groups: the oldest go, but never one that somebody needs."""

from dataclasses import dataclass

from domain_builders import a_group
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.ids import GroupId
from cleveragents.domain.retention import CheckpointRetentionPolicy, RetentionDecision


@dataclass(frozen=True)
class Case:
    groups: list[CheckpointGroup]
    pinned: set[GroupId]
    limit: int

    def decided(self) -> RetentionDecision:
        policy = CheckpointRetentionPolicy(max_groups=self.limit)
        return policy.decide(self.groups, pinned=self.pinned)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    marks = draw(st.lists(st.sampled_from(["", "", "", "hand", "pin", "both"]), max_size=25))
    groups = [
        a_group(number, labelled_by_hand=mark in ("hand", "both"))
        for number, mark in enumerate(marks)
    ]
    pinned = {
        group.group_id for group, mark in zip(groups, marks, strict=True) if mark in ("pin", "both")
    }
    return Case(groups, pinned, draw(st.integers(min_value=1, max_value=30)))


@given(cases())
def test_what_somebody_needs_always_stays(case: Case) -> None:
    decision = case.decided()

    needed = {g.group_id for g in case.groups if g.labelled_by_hand} | case.pinned
    needed |= {g.group_id for g in (*case.groups[:1], *case.groups[-1:])}
    assert not needed & set(decision.removed)
    assert needed <= set(decision.kept)


@given(cases())
def test_never_more_go_than_there_are_too_many(case: Case) -> None:
    decision = case.decided()
    surplus = max(0, len(case.groups) - case.limit)

    assert len(decision.removed) <= surplus
    # Fewer go only where everything that is left is needed.
    if len(decision.removed) < surplus:
        assert "within the limit" not in decision.kept.values()


@given(cases())
def test_the_oldest_that_may_go_are_the_ones_that_go(case: Case) -> None:
    decision = case.decided()

    order = [group.group_id for group in case.groups]
    assert list(decision.removed) == [key for key in order if key in decision.removed]
    may_have_gone = [key for key in order if decision.kept.get(key) == "within the limit"]
    if decision.removed and may_have_gone:
        assert order.index(decision.removed[-1]) < order.index(may_have_gone[0])


@given(cases())
def test_every_group_either_stays_with_a_reason_or_goes(case: Case) -> None:
    decision = case.decided()

    everything = {group.group_id for group in case.groups} | case.pinned
    assert set(decision.kept) | set(decision.removed) == everything
    assert not set(decision.kept) & set(decision.removed)
    assert all(decision.kept.values())


def test_the_reasons_are_told_apart() -> None:
    groups = [a_group(n, labelled_by_hand=n == 2) for n in range(6)]
    pinned = {groups[3].group_id}

    decision = CheckpointRetentionPolicy(max_groups=5).decide(groups, pinned=pinned)

    assert decision.removed == (groups[1].group_id,)
    assert decision.kept == {
        groups[0].group_id: "the first",
        groups[2].group_id: "labelled by hand",
        groups[3].group_id: "the plan stands on it",
        groups[4].group_id: "within the limit",
        groups[5].group_id: "the most recent",
    }


def test_up_to_the_limit_nothing_goes() -> None:
    groups = [a_group(n) for n in range(5)]

    assert CheckpointRetentionPolicy(max_groups=5).decide(groups, pinned=set()).removed == ()
