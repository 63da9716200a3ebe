"""A plan's history as people read it: a row for each step, and for what else there is."""

from collections.abc import Sequence
from typing import Any

from domain_builders import CODE, NOW, PLAN, a_group, a_plan, ulid
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cleveragents.domain.action import Action, ActorSpec, Step
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointReason, ResourceState
from cleveragents.domain.decision import (
    Position,
    ToolCall,
    ToolCallStatus,
    ToolResult,
)
from cleveragents.domain.ids import DecisionId, ToolCallId
from cleveragents.domain.plan import Phase, Plan, State
from cleveragents.domain.timeline import Timeline, is_moment, timeline

ACTION = Action(
    name="demo",
    description="Do it",
    resources=(),
    steps=tuple(Step(name=name, tool="file.write") for name in ("one", "two", "three")),
)
R = CheckpointReason


def a_moment(seq: int, done: int, reason: R = R.DECISION, **fields: Any) -> CheckpointGroup:
    """Group `seq`, taken when so many steps were over."""
    values: dict[str, Any] = {"step_index": done, "label": f"group {seq}", **fields}
    return a_group(seq, reason=reason, last_completed_step=done - 1, **values)


def a_step(seq: int, index: int) -> list[CheckpointGroup]:
    """The three groups that a step which writes makes by default."""
    return [
        a_moment(seq, index, label=f"decision {index + 1}"),
        a_moment(seq + 1, index, R.ON_TOOL_WRITE, label=f"before {index + 1}"),
        a_moment(
            seq + 2,
            index + 1,
            R.ON_TOOL_WRITE_COMPLETE,
            label=f"after {index + 1}",
            step_index=index,
        ),
    ]


def stood(groups: Sequence[CheckpointGroup], done: int, **fields: Any) -> Plan:
    head = groups[-1].head if groups else None
    values = {"phase": Phase.EXECUTE, "state": State.COMPLETE, "head": head, **fields}
    return a_plan(action=ACTION, last_completed_step=done - 1, **values)


def a_call(index: int, *paths: str, **fields: Any) -> ToolCall:
    values: dict[str, Any] = {
        "call_id": ToolCallId(ulid(700 + index)),
        "plan_id": PLAN,
        "decision_id": DecisionId(ulid(600 + index)),
        "position": Position(timeline=0, seq=index),
        "step_index": index,
        "tool": "file.write",
        "arguments": {},
        "status": ToolCallStatus.SUCCEEDED,
        "result": ToolResult(),
        "error": None,
        "changes": tuple(FileChange(path, ChangeKind.ADDED) for path in paths),
        "side_effects": (),
        "started_at": NOW,
        "finished_at": NOW,
        **fields,
    }
    return ToolCall(**values)


def told(line: Timeline) -> list[tuple[int | None, str, str | None]]:
    return [(row.number, row.name, row.group.label if row.group else None) for row in line.rows]


START = a_moment(1, 0, label="start")
RUN = [START, *a_step(2, 0), *a_step(5, 1), *a_step(8, 2)]
COMPLETE = a_moment(11, 3, R.COMPLETE, label="complete", step_index=2)


def test_each_step_is_a_row_that_leads_to_the_state_it_left() -> None:
    line = timeline(stood([*RUN, COMPLETE], 3), [*RUN, COMPLETE])

    assert told(line) == [
        (0, "start", "start"),
        (1, "one", "after 1"),
        (2, "two", "after 2"),
        (3, "three", "complete"),
    ]
    assert line.here is line.rows[-1]
    assert [group.label for group in line.rows[1].groups] == ["after 1", "decision 2", "before 2"]
    before = [line.before(n) for n in (1, 2, 3, 4)]
    assert [row and row.name for row in before] == ["two", "one", "start", None]
    assert (line.rows[1].when, line.rows[1].reason) == (NOW, R.ON_TOOL_WRITE_COMPLETE)


def test_a_plan_that_has_not_begun_has_no_rows() -> None:
    line = timeline(a_plan(action=ACTION), [])

    assert (line.rows, line.here, line.before(1)) == ((), None, None)


def test_where_only_decisions_have_groups_the_next_ones_holds_what_a_step_left() -> None:
    groups = [START, a_moment(2, 0, label="d1"), a_moment(3, 1, label="d2")]

    line = timeline(stood(groups, 2, state=State.QUEUED), groups)

    assert told(line) == [(0, "start", "start"), (1, "one", "d2"), (2, "two", None)]
    assert line.here is line.rows[2]


def test_what_a_step_changed_is_told_by_its_calls_that_count() -> None:
    calls = [a_call(0, "a"), a_call(1, "gone", undone=True), a_call(1, "b", "c"), a_call(1, "b")]

    line = timeline(stood(RUN, 3), RUN, calls)

    assert [[c.path for c in row.changes] for row in line.rows] == [[], ["a"], ["b", "c", "b"], []]
    assert [row.files_changed for row in line.rows] == [0, 1, 2, 0]


def test_a_label_by_hand_what_a_rollback_keeps_and_the_middle_of_a_step_have_their_own_rows() -> (
    None
):
    half = ResourceState(resource_id=CODE, snapshot="2", state_hash="", boundary="1")
    groups = [
        *RUN[:4],
        a_moment(20, 1, R.MANUAL, label="mine", labelled_by_hand=True),
        a_moment(21, 1, R.BEFORE_ROLLBACK, label="before resume", source="rollback"),
        a_moment(22, 1, R.FILES_RESTORED, label="restored a"),
        a_moment(23, 1, R.BEFORE_APPLY, label="before apply"),
        a_moment(24, 1, R.DECISION, label="prompt: this", source="prompt"),
        a_moment(25, 1, R.ON_TOOL_WRITE, label="half", resource_states=(half,)),
        a_moment(26, 1, R.ON_ERROR, label="error in two"),
    ]

    line = timeline(stood(groups, 1, state=State.ERRORED), groups)

    assert [name for number, name, _ in told(line) if number is None] == [
        *("mine", "before resume", "restored a", "before apply", "prompt: this", "half"),
        "error in two",
    ]
    assert line.here == line.rows[-1]
    # In the middle of step 2: one step before that is what step 1 left.
    before = line.before(1)
    assert before is not None
    assert before.number == 1


def test_what_a_rollback_kept_is_called_by_where_it_led_to() -> None:
    groups = [
        *RUN[:4],
        a_moment(20, 3, R.BEFORE_ROLLBACK, label="x", source="rollback", superseded=True),
        a_moment(21, 3, R.BEFORE_ROLLBACK, label="y", source="rollback", superseded=True),
        a_moment(22, 3, R.BEFORE_ROLLBACK, label="z", source="correct"),
    ]
    targets = [RUN[3].group_id, ulid(999), RUN[3].group_id]
    for group, target in zip(groups[4:], targets, strict=True):
        group.checkpoints[0].metadata["target"] = target  # type: ignore[index]

    line = timeline(stood(RUN[:4], 1, state=State.QUEUED), groups)

    assert [row.name for row in line.rows if row.number is None] == [
        "before going back to 1",
        *"yz",
    ]
    assert [row.superseded for row in line.rows if row.number is None] == [True, True, False]


def test_what_a_rollback_has_left_behind_is_folded_by_the_line_it_was_on() -> None:
    gone = [
        a_moment(n, done, superseded=True, label=str(n)) for n, done in ((5, 1), (6, 2), (7, 2))
    ]
    groups = [*RUN[:4], *gone]

    line = timeline(stood(RUN[:4], 1, state=State.QUEUED), groups)

    assert told(line)[2:] == [(None, "5", "5"), (None, "6", "6")]
    assert [len(row.groups) for row in line.rows if row.superseded] == [1, 2]


def test_steps_that_a_correction_does_again_have_the_new_groups_and_the_start_stays() -> None:
    again = [a_moment(20 + n, done, label=f"again {done}") for n, done in enumerate((0, 1))]
    told_by = a_moment(19, 0, R.DECISION, label="correction 1", source="correct")
    end = a_moment(30, 3, R.COMPLETE, label="complete", step_index=2)
    groups = [*RUN, told_by, *again, end]

    line = timeline(stood(groups, 3), groups)

    assert [row for row in told(line) if row[0] is not None] == [
        (0, "start", "start"),
        (1, "one", "again 1"),
        (2, "two", None),
        (3, "three", "complete"),
    ]
    left = [row for row in line.rows if row.superseded]
    assert [row.name for row in left] == ["after 1", "after 2", "after 3"]
    assert [row.name for row in line.rows if row.number is None and not row.superseded] == [
        "correction 1"
    ]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Plan, list[CheckpointGroup]]:
    """Groups of any kind, steps forward and back, some superseded, some pruned."""
    done, groups = 0, list[CheckpointGroup]()
    for seq in range(1, draw(st.integers(1, 14))):
        done = max(0, done + draw(st.sampled_from((-2, 0, 0, 1, 1, 2))))
        reason = draw(st.sampled_from(list(R)))
        source = draw(st.sampled_from(("file.write", "correct", "rollback")))
        gone = draw(st.booleans()) and draw(st.booleans())
        index = max(0, done - draw(st.integers(0, 1)))
        groups.append(a_moment(seq, done, reason, source=source, superseded=gone, step_index=index))
    live = [group for group in groups if not group.superseded]
    head = draw(st.sampled_from(live)) if live else None
    after = head.last_completed_step + 1 + draw(st.integers(0, 2)) if head else 0
    kept = [g for g in groups if g is head or draw(st.integers(0, 5))]
    state = draw(st.sampled_from((State.QUEUED, State.COMPLETE, State.ERRORED)))
    return stood([head] if head else [], after, state=state), kept


@given(histories())
def test_every_group_is_in_one_row_numbers_have_no_gap_and_the_plan_stands_in_one(
    history: tuple[Plan, list[CheckpointGroup]],
) -> None:
    plan, groups = history

    line = timeline(plan, groups)

    folded = [group.group_id for row in line.rows for group in row.groups]
    assert sorted(folded) == sorted(group.group_id for group in groups)
    numbers = [row.number for row in line.rows if row.number is not None]
    assert numbers == list(range(plan.last_completed_step + 2 if line.rows else 0))
    assert sum(row.here for row in line.rows) == (1 if line.rows else 0)
    for row in line.rows:
        assert row.group is None or row.group in row.groups
        assert (row.group is None) == (row.groups == ())
        assert row.number is None or not any(is_moment(group) for group in row.groups)
        if row.number is not None:
            assert {group.last_completed_step for group in row.groups} <= {row.number - 1}
    places = [row.group.position.seq for row in line.rows if row.group is not None]
    assert places == sorted(places)
    assert line.before(0) is None or line.before(0) == line.numbered(line.stands_at)


def test_a_program_that_is_its_own_memory_goes_back_to_where_it_had_noted_the_end() -> None:
    plan = stood(RUN, 3)
    by_program = replace(plan, action=replace(ACTION, actor=ActorSpec(type="command")))

    line = timeline(by_program, RUN)

    assert told(line) == [
        (0, "start", "start"),
        (1, "one", "decision 2"),
        (2, "two", "decision 3"),
        (3, "three", "after 3"),
    ]


def test_one_step_back_from_a_step_that_failed_for_its_actor_is_before_that_step() -> None:
    """It is over, has left nothing, and the error stands behind it."""
    groups = [
        a_moment(1, 0, label="start"),
        *a_step(2, 0),
        *a_step(5, 1)[:2],
        a_moment(9, 2, R.ON_ERROR, label="error"),
    ]
    line = timeline(stood(groups, 2, state=State.ERRORED), groups)

    back = line.before(1)
    assert back is not None
    assert (back.number, line.numbered(2)) == (1, line.before(0))


def test_where_no_checkpoints_are_made_each_step_that_is_over_has_a_row_all_the_same() -> None:
    line = timeline(stood([], 1), [])

    assert told(line) == [(0, "start", None), (1, "one", None)]
    assert (line.stands_at, line.here) == (1, line.rows[1])
    assert timeline(a_plan(action=ACTION), []).stands_at == 0


def test_where_all_steps_were_taken_back_the_start_stays() -> None:
    groups = [START]

    assert told(timeline(stood(groups, 0), groups)) == [(0, "start", "start")]


def test_what_a_rollback_has_left_behind_leads_to_the_end_of_its_step_and_has_its_changes() -> None:
    first, second = (DecisionId(ulid(600 + index)) for index in (0, 1))
    gone = [
        a_moment(5, 2, superseded=True, label="after 2", step_index=1, decision_id=second),
        a_moment(6, 2, R.COMPLETE, superseded=True, step_index=1, decision_id=second),
        a_moment(7, 2, superseded=True, label="decision 3", decision_id=first),
    ]
    calls = [a_call(0, "a"), a_call(1, "b", undone=True), a_call(1, "c", undone=True)]

    line = timeline(stood(RUN[:4], 1, state=State.QUEUED), [*RUN[:4], *gone], calls)

    (row,) = [row for row in line.rows if row.superseded]
    assert (row.name, row.group) == ("group 6", gone[1])
    assert [change.path for change in row.changes] == ["b", "c"]


def test_what_a_rollback_to_a_label_kept_is_called_by_that_label() -> None:
    mine = a_moment(5, 1, R.MANUAL, label="mine", labelled_by_hand=True)
    kept = a_moment(6, 1, R.BEFORE_ROLLBACK, label="x", source="rollback", superseded=True)
    kept.checkpoints[0].metadata["target"] = mine.group_id  # type: ignore[index]
    bare = a_moment(7, 1, R.MANUAL, label="bare", checkpoints=())

    line = timeline(stood([mine], 1, state=State.QUEUED), [*RUN[:4], mine, kept, bare])

    assert [row.name for row in line.rows][2:] == ["mine", "before going back to mine", "bare"]


def test_one_step_back_from_the_middle_of_a_step_is_before_it_however_the_plan_came_there() -> None:
    half = ResourceState(resource_id=CODE, snapshot="2", state_hash="", boundary="1")
    middle = a_moment(6, 1, R.ON_TOOL_WRITE, resource_states=(half,))
    there = timeline(stood([middle], 1, state=State.QUEUED), [*RUN[:4], middle])
    killed = timeline(stood(RUN[:4], 1, state=State.PROCESSING), RUN[:4])
    waits = timeline(stood(RUN[:4], 1, state=State.QUEUED), RUN[:4])

    assert [line.stands_at for line in (there, killed, waits)] == [2, 2, 1]
