"""What counts after corrections and rollbacks: decisions, and results that were let stand."""

from domain_builders import NOW, PLAN, ulid
from msgspec.structs import replace

from cleveragents.domain.correction import (
    Correction,
    CorrectionMode,
    CorrectionStatus,
    Supersession,
    Unchecked,
    superseded_decisions,
    unchecked_decisions,
)
from cleveragents.domain.decision import (
    Decision,
    DecisionType,
    Fork,
    Position,
    ToolCall,
    ToolCallStatus,
    ToolResult,
    lineage,
)
from cleveragents.domain.ids import CorrectionId, DecisionId, ToolCallId


def number(value: int) -> DecisionId:
    return DecisionId(ulid(value))


def decided(value: int) -> Decision:
    return Decision(
        decision_id=number(value),
        plan_id=PLAN,
        parent_id=number(0) if value else None,
        position=Position(timeline=0, seq=value * 10),
        type=DecisionType.TOOL_INVOCATION,
        question="",
        chosen="",
        phase="execute",
        step_index=value,
        attempt=1,
        created_at=NOW,
    )


BY = CorrectionId(ulid(90))


def replaced_at(value: int, seq: int, timeline: int = 0) -> Supersession:
    position = Position(timeline=timeline, seq=seq)
    return Supersession(decision_id=number(value), correction_id=BY, position=position)


def test_a_decision_is_gone_as_long_as_the_correction_of_it_counts() -> None:
    decisions = [decided(0), decided(1), decided(2)]
    gone = [replaced_at(1, seq=25)]

    now = superseded_decisions(decisions, gone, lineage(0, []))
    before_it = Fork(timeline=1, start=Position(timeline=0, seq=22))
    after_it = Fork(timeline=2, start=Position(timeline=0, seq=26))

    assert now == {number(1)}
    assert superseded_decisions(decisions, gone, lineage(1, [before_it])) == set()
    assert superseded_decisions(decisions, gone, lineage(2, [before_it, after_it])) == {number(1)}


def test_what_a_rollback_left_behind_is_gone_with_or_without_a_correction() -> None:
    decisions = [
        decided(0),
        decided(1),
        decided(3),
    ]
    fork = Fork(timeline=1, start=Position(timeline=0, seq=12))

    assert superseded_decisions(decisions, [], lineage(1, [fork])) == {number(3)}


def test_a_correction_is_about_what_it_corrects_what_it_adds_and_what_it_takes_back() -> None:
    correction = Correction(
        correction_id=BY,
        plan_id=PLAN,
        decision_id=number(1),
        mode=CorrectionMode.REVERT,
        guidance="",
        status=CorrectionStatus.PENDING,
        intervention_id=number(2),
        affected=(number(3), number(4)),
        created_at=NOW,
    )

    assert [n for n in range(6) if correction.is_about(number(n))] == [1, 2, 3, 4]
    assert correction.done() == replace(correction, status=CorrectionStatus.DONE)
    assert correction.abandoned() == replace(correction, status=CorrectionStatus.ABANDONED)


# --- what was let stand -------------------------------------------------------------------------


def called(value: int, seq: int, *, undone: bool = False) -> ToolCall:
    return ToolCall(
        call_id=ToolCallId(ulid(seq)),
        plan_id=PLAN,
        decision_id=number(value),
        position=Position(timeline=0, seq=seq),
        step_index=value,
        tool="shell",
        arguments={},
        status=ToolCallStatus.SUCCEEDED,
        result=ToolResult(),
        error=None,
        changes=(),
        side_effects=(),
        started_at=NOW,
        finished_at=NOW,
        undone=undone,
    )


def let_stand(value: int, seq: int) -> Unchecked:
    return Unchecked(
        decision_id=number(value), position=Position(timeline=0, seq=seq), why=f"at {seq}"
    )


def test_a_result_that_was_let_stand_is_unchecked_until_it_is_made_again() -> None:
    marks = [let_stand(1, seq=30)]

    assert unchecked_decisions(marks, [called(1, 15)], lineage(0, [])) == {number(1): "at 30"}
    assert unchecked_decisions(marks, [called(1, 15), called(1, 40)], lineage(0, [])) == {}


def test_a_result_that_is_taken_back_is_not_unchecked() -> None:
    marks = [let_stand(1, seq=30)]

    assert unchecked_decisions(marks, [called(1, 15, undone=True)], lineage(0, [])) == {}
    assert unchecked_decisions(marks, [], lineage(0, [])) == {}


def test_going_back_to_before_it_was_let_stand_takes_the_mark_away_and_forward_brings_it_back() -> (
    None
):
    marks, calls = [let_stand(1, seq=30)], [called(1, 15)]
    before = Fork(timeline=1, start=Position(timeline=0, seq=20))
    after = Fork(timeline=2, start=Position(timeline=0, seq=31))

    assert unchecked_decisions(marks, calls, lineage(1, [before])) == {}
    assert unchecked_decisions(marks, calls, lineage(2, [before, after])) == {number(1): "at 30"}


def test_of_two_marks_the_later_one_says_why() -> None:
    marks = [let_stand(1, seq=30), let_stand(1, seq=40)]

    assert unchecked_decisions(marks, [called(1, 15)], lineage(0, [])) == {number(1): "at 40"}
