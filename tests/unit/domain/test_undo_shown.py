"""What an undo leaves to see: a log with what can be redone, and whether the plan is at its end."""

from collections.abc import Callable

import pytest
from domain_builders import ACTION
from hypothesis import given, settings
from msgspec.structs import replace
from undo_model import DEEDS, Past, lived

from cleveragents.domain.action import Action, ActorSpec, Step
from cleveragents.domain.checkpoint import CheckpointReason as R
from cleveragents.domain.plan import State
from cleveragents.domain.timeline import Timeline, timeline
from cleveragents.domain.undo import (
    PlanPast,
    brief_rows,
    is_at_its_end,
    place_of,
    redoable,
    with_undone,
)


def log_of(past: Past) -> Timeline:
    return with_undone(past.value, timeline(past.plan, past.groups), past.decisions)


def undone(past: Past) -> list[str]:
    return [row.name for row in log_of(past).rows if row.undone]


@given(DEEDS)
@settings(max_examples=200)
def test_a_log_has_every_place_that_can_be_redone_once(deeds: list[object]) -> None:
    past = lived(deeds)
    line = with_undone(past.value, timeline(past.plan, past.groups), [])
    rows = brief_rows(line)
    shown = [place_of(row.group) for row in rows if row.group]
    undone = [place_of(r.group) for r in rows if r.group and r.undone and not r.by_hand]

    assert all(place_of(row.group) in shown for row in line.rows if row.group and row.undone)
    assert all(shown.count(place) == 1 for place in undone)
    for row in line.rows:
        alike = [
            r for r in rows if row.group and r.group and place_of(r.group) == place_of(row.group)
        ]
        if row.undone:
            assert any(r.undone or r.by_hand or not r.superseded for r in alike)
        elif row.reason in (R.BEFORE_ROLLBACK, R.FILES_RESTORED):
            assert alike
        assert row in rows or row.superseded
    kept = [row for row in rows if row.superseded and not row.undone and not row.by_hand]
    assert all(row.reason in (R.BEFORE_ROLLBACK, R.FILES_RESTORED) for row in kept)
    assert [row for row in rows if row.here] == [row for row in line.rows if row.here]
    assert bool(redoable(past.value)) or not undone


def test_what_was_undone_is_called_as_its_step_was_until_something_new_is_done() -> None:
    past = Past()
    for _ in range(3):
        past.step()
    assert undone(past) == []

    past.undo()
    assert undone(past) == ["step 3"]
    past.undo()
    assert undone(past) == ["step 2", "step 3"]
    past.redo()
    assert undone(past) == ["step 3"]

    past.step()
    assert undone(past) == []


def test_a_step_that_changed_nothing_is_undone_and_done_with_the_change_before_it() -> None:
    past = Past()
    past.step()
    past.step(changes=False)
    past.undo()

    assert undone(past) == ["step 1", "step 2"]


def test_a_label_by_hand_keeps_its_name_where_the_step_before_it_is_undone() -> None:
    past = Past()
    past.step()
    past.label()
    label = past.groups[-1].label
    past.step()
    past.undo(2)

    assert undone(past) == ["step 1", label, "step 2"]


def test_what_was_only_decided_or_kept_by_a_way_back_is_nothing_that_was_done() -> None:
    past = Past()
    past.step()
    past.fail()
    failed = past.groups[-1]
    past.undo()

    (row,) = [row for row in log_of(past).rows if row.undone]
    assert row.name == failed.label


def test_what_cannot_be_redone_any_more_is_called_by_its_label() -> None:
    past = Past()
    past.step()
    past.undo()
    past.step()

    line = log_of(past)

    assert line == timeline(past.plan, past.groups)
    assert "step 1" not in [row.name for row in line.rows if row.superseded]


# --- where a plan was complete once -----------------------------------------------------------


def finished() -> Past:
    past = Past()
    past.step()
    past.step()
    past.complete()
    return past


def stands_at_its_end(past: Past) -> bool:
    """A plan waits after each rollback."""
    waiting = replace(past.plan, state=State.QUEUED, error=None)
    return is_at_its_end(replace(past.value, plan=waiting))


def test_what_was_redone_to_its_end_is_at_its_end() -> None:
    past = finished()
    for _ in range(2):
        past.undo()
        assert not stands_at_its_end(past)
        past.redo()
        assert stands_at_its_end(past)
    past.label()
    assert stands_at_its_end(past)
    past.undo(2)
    past.redo()
    assert not stands_at_its_end(past)
    past.redo()
    assert stands_at_its_end(past)


def test_going_back_to_any_group_of_the_end_is_its_end_and_to_no_other() -> None:
    past = finished()
    last = place_of(past.groups[-1])
    for group in list(past.groups):
        past.rollback(group)
        assert stands_at_its_end(past) == (place_of(group) == last)


@pytest.mark.parametrize(
    "deed", [Past.step, Past.tell, Past.restore_file, Past.fail, lambda past: past.correct(1)]
)
def test_once_something_was_done_or_said_it_is_no_end_any_more(
    deed: Callable[[Past], None],
) -> None:
    past = finished()
    past.undo()
    past.redo()
    deed(past)
    assert not stands_at_its_end(past)


def test_another_line_that_came_to_the_same_files_is_not_at_its_end() -> None:
    past = finished()
    content = past.content
    past.undo()
    past.step()
    past.content = content
    past.groups[-1] = replace(past.groups[-1], resource_states=past.groups[-5].resource_states)
    assert not stands_at_its_end(past)


def test_a_plan_that_does_not_wait_is_never_taken_for_complete() -> None:
    past = finished()
    for state in (State.PROCESSING, State.ERRORED, State.CANCELLED):
        assert not is_at_its_end(replace(past.value, plan=replace(past.plan, state=state)))
    assert not is_at_its_end(PlanPast(plan=past.plan, groups=(), forks=()))


def test_who_goes_back_to_the_last_word_of_a_person_is_at_the_end_that_came_after_it() -> None:
    past = Past()
    past.step()
    past.tell()
    told = past.groups[-1]
    past.complete()
    past.undo()
    past.rollback(told)

    assert stands_at_its_end(past)


def test_steps_that_are_written_down_are_at_their_end_once_all_are_done_without_a_record() -> None:
    past = Past()
    found = [stands_at_its_end(past)]
    for _ in range(3):
        past.step()
        found.append(stands_at_its_end(past))

    assert len(past.plan.action.steps) == 2
    assert found == [False, False, True, True]


@pytest.mark.parametrize(
    "action",
    [
        replace(ACTION, actor=ActorSpec(type="llm")),
        replace(ACTION, validations=(Step(name="check", tool="check"),)),
    ],
)
def test_an_actor_that_decides_and_checks_that_are_to_come_are_not_known_to_be_over(
    action: Action,
) -> None:
    past = Past()
    past.plan = replace(past.plan, action=action)
    past.step()
    past.step()

    assert not stands_at_its_end(past)
