"""Child plans: their order, and what a rollback of the parent makes of them."""

import pytest
from msgspec.structs import replace

from cleveragents.domain.action import Subplan, Subplans
from cleveragents.domain.decision import Fork, Position, lineage
from cleveragents.domain.errors import ChildSettledError
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.subplan import (
    ChildOf,
    ChildPlan,
    Conflict,
    ConflictKind,
    MergeOutcome,
    current,
    in_a_circle,
    waves,
)

PARENT = PlanId("01J0000000000000000000000P")
TOP = PlanId("01J0000000000000000000000T")
DECISION = DecisionId("01J0000000000000000000000D")


def at(seq: int, timeline: int = 0) -> Position:
    return Position(timeline=timeline, seq=seq)


CHILD = ChildPlan(
    plan_id=PlanId("01J0000000000000000000000C"),
    parent_id=PARENT,
    root_id=PARENT,
    decision_id=DECISION,
    name="en",
    index=0,
    position=at(5),
)


def spec(name: str, *depends_on: str) -> Subplan:
    return Subplan(name=name, description=name, resources=(), steps=(), depends_on=depends_on)


def names(subplans: Subplans) -> list[list[str]]:
    return [[child.name for child in wave] for wave in waves(subplans)]


def test_children_run_together_as_far_as_their_dependencies_allow() -> None:
    plans = (spec("c", "a", "b"), spec("a"), spec("b"), spec("d", "c"), spec("e"))
    assert names(Subplans(plans=plans, parallel=True)) == [["a", "b", "e"], ["c"], ["d"]]


def test_one_after_the_other_keeps_the_order_of_the_file() -> None:
    plans = (spec("c", "b"), spec("a"), spec("b"))
    assert names(Subplans(plans=plans)) == [["a"], ["b"], ["c"]]


def test_a_circle_is_found_with_everyone_behind_it() -> None:
    plans = [spec("a"), spec("b", "c"), spec("c", "b", "unknown"), spec("d", "c")]
    assert in_a_circle(plans) == ["b", "c", "d"]
    with pytest.raises(ValueError, match=r"^the children depend on each other in a circle$"):
        waves(Subplans(plans=tuple(plans), parallel=True))


def test_who_waits_for_all_before_it_is_in_no_circle() -> None:
    assert in_a_circle([spec("c", "a", "b"), spec("b", "a"), spec("a")]) == []


def reach(*starts: int) -> "dict[int, int | None]":
    """The line after rollbacks to these places of the first one."""
    forks = [Fork(timeline=i + 1, start=at(seq)) for i, seq in enumerate(starts)]
    return dict(lineage(len(starts), forks))


def test_a_rollback_to_before_the_spawn_invalidates_and_undoing_it_brings_back() -> None:
    merged = CHILD.merged_at(at(9))
    gone = merged.on_line(reach(4))
    assert (gone.invalidated, gone.counts) == (True, False)
    back = gone.on_line(reach(4, 10))
    assert (back.outcome, back.counts) == (MergeOutcome.MERGED, True)


def test_a_rollback_between_spawn_and_merge_makes_the_result_wait_again() -> None:
    waiting = CHILD.merged_at(at(9)).on_line(reach(7))
    assert (waiting.outcome, waiting.counts) == (MergeOutcome.PENDING, True)
    again = waiting.merged_at(at(12, timeline=1))
    assert again.on_line(reach(7)).outcome is MergeOutcome.MERGED
    assert again.on_line(reach(7, 10)).outcome is MergeOutcome.MERGED
    assert again.on_line(reach(7, 8)).outcome is MergeOutcome.PENDING


def test_a_failure_or_conflict_stays_what_it_is_on_its_line() -> None:
    conflict = Conflict(resource="code", path="a", kind=ConflictKind.CONTENT)
    assert CHILD.failed("why").on_line(reach()).reason == "why"
    assert CHILD.conflicting([conflict], "").on_line(reach()).conflicts == (conflict,)
    assert str(conflict) == "code:a (content)"
    assert CHILD.failed("why").retried().retries == 1
    assert CHILD.failed("why").retried().reason == ""


def test_what_became_of_a_child_is_told_without_what_was_said_before() -> None:
    conflict = Conflict(resource="code", path="a", kind=ConflictKind.CONTENT)
    before = replace(CHILD, reason="old", conflicts=(conflict,), merges=(at(7),))

    def now(outcome: MergeOutcome, **fields: object) -> ChildPlan:
        values = {"reason": "", "conflicts": (), **fields}
        return replace(before, outcome=outcome, **values)  # pyright: ignore[reportArgumentType]

    assert before.merged_at(at(9)) == now(MergeOutcome.MERGED, merges=(at(7), at(9)))
    assert before.failed("new") == now(MergeOutcome.FAILED, reason="new")
    assert before.waiting() == now(MergeOutcome.PENDING)
    assert before.retried().retried() == now(MergeOutcome.PENDING, retries=2)
    assert before.merged_at(at(9)).taken_back() == before.waiting()
    twice = before.merged_at(at(9)).merged_at(at(11))
    assert twice.taken_back().merges == (at(7), at(9))
    assert before.discarded() == replace(before, outcome=MergeOutcome.DISCARDED)
    other = Conflict(resource="code", path="b", kind=ConflictKind.DELETE)
    assert before.conflicting(iter([other]), "new") == now(
        MergeOutcome.CONFLICT, reason="new", conflicts=(other,)
    )


def test_a_correction_of_the_spawn_invalidates_its_children() -> None:
    merged = CHILD.merged_at(at(9))

    assert merged.on_line(reach(), replaced=True).invalidated
    assert not merged.on_line(reach()).invalidated
    assert not CHILD.on_line(reach()).invalidated


def test_only_those_that_count_are_the_children_of_a_spawn() -> None:
    other = replace(CHILD, decision_id=DecisionId("01J000000000000000000000DD"))
    gone = replace(CHILD, invalidated=True)
    assert current([gone, CHILD.discarded(), other], DECISION) == {}
    assert current([CHILD.discarded(), CHILD], DECISION) == {"en": CHILD}


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({"outcome": MergeOutcome.MERGED}, "is merged into"),
        ({"outcome": MergeOutcome.DISCARDED}, "was replaced in"),
        ({"invalidated": True}, "was taken back with"),
        ({"over": True}, "ended with"),
    ],
)
def test_nothing_can_be_done_to_a_child_that_is_settled(
    link: dict[str, object], words: str
) -> None:
    fields = {"outcome": MergeOutcome.PENDING, "invalidated": False, **link}
    child = ChildOf(parent_id=PARENT, root_id=TOP, name="en", **fields)  # pyright: ignore[reportArgumentType]
    whom = TOP if child.over else PARENT
    assert child.settled
    with pytest.raises(ChildSettledError) as caught:
        child.refuse_if_settled(CHILD.plan_id)
    told = f"plan {CHILD.plan_id} is the child `en`, which {words} plan {whom}"
    assert caught.value.message == told
    assert whom in caught.value.hint


def test_a_child_that_is_still_wanted_is_nobodys_refusal() -> None:
    child = ChildOf(
        parent_id=PARENT,
        root_id=PARENT,
        name="en",
        outcome=MergeOutcome.CONFLICT,
        invalidated=False,
    )
    assert not child.settled
    child.refuse_if_settled(CHILD.plan_id)


@pytest.mark.parametrize(
    ("field", "value"),
    [("resource", "docs"), ("path", "b"), ("kind", ConflictKind.DELETE), ("key", "k2")],
)
def test_a_conflict_is_another_one_once_its_place_or_its_contents_are(
    field: str, value: object
) -> None:
    first = Conflict(resource="code", path="a", kind=ConflictKind.CONTENT, key="k1", ours="x")

    assert first.is_as(replace(first, ours="told otherwise", more=3))
    assert not first.is_as(replace(first, **{field: value}))
