"""Where undo and redo lead to: over every history that the services can make."""

from collections.abc import Callable

import pytest
from domain_builders import CODE
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from undo_model import Past

from cleveragents.domain.plan import State
from cleveragents.domain.timeline import timeline
from cleveragents.domain.undo import (
    PlanPast,
    brief_rows,
    is_at_its_end,
    leads_back,
    place_of,
    redoable,
    undoable,
    with_undone,
)

DEEDS = st.lists(
    st.one_of(
        st.just("step"),
        st.just("step"),
        st.sampled_from(("quiet step", "fail", "label", "tell", "only", "correct", "undo", "redo")),
        st.tuples(st.just("rollback"), st.integers(0, 1000)),
    ),
    max_size=14,
)


def lived(deeds: list[object]) -> Past:
    past = Past()
    simple = {
        "step": past.step,
        "quiet step": lambda: past.step(changes=False),
        "correct": lambda: past.correct(past.done // 2),
        "only": past.restore_file,
        "fail": past.fail,
        "label": past.label,
        "tell": past.tell,
        "undo": past.undo,
        "redo": past.redo,
    }
    for deed in deeds:
        match deed:
            case ("rollback", int(pick)):
                past.rollback(past.groups[pick % len(past.groups)])
            case str(word):
                simple[word]()
    return past


@given(DEEDS, st.integers(1, 5))
@settings(max_examples=300)
def test_as_many_redos_as_undos_lead_back_to_the_same_files(deeds: list[object], many: int) -> None:
    past = lived(deeds)
    trail = [past.content]
    while len(trail) <= many and past.undo():
        trail.append(past.content)
    for content in trail[-2::-1]:
        assert past.redo()
        assert past.content == content


@given(DEEDS)
@settings(max_examples=300)
def test_undoing_everything_is_the_start(deeds: list[object]) -> None:
    past = lived(deeds)
    while past.undo():
        pass

    assert past.content == "start"


@given(DEEDS)
@settings(max_examples=300)
def test_each_undo_and_each_redo_changes_the_files(deeds: list[object]) -> None:
    past = lived(deeds)
    before = past.content
    if past.undo():
        assert past.content != before
    before = past.content
    if past.redo():
        assert past.content != before


@given(DEEDS)
@settings(max_examples=300)
def test_redo_leads_only_to_what_was_there(deeds: list[object]) -> None:
    past = lived(deeds)
    known = {group.resource_states[0].state_hash for group in past.groups}
    while past.redo():
        assert past.content in known


@given(DEEDS)
@settings(max_examples=300)
def test_several_at_once_are_as_many_one_by_one(deeds: list[object]) -> None:
    past = lived(deeds)
    for way, go in ((undoable, past.undo), (redoable, past.redo)):
        foretold = [group.resource_states[0].state_hash for group in way(past.value)]
        found: list[str] = []
        while go():
            found.append(past.content)
        assert found == foretold


@given(DEEDS)
@settings(max_examples=300)
def test_after_something_new_there_is_nothing_to_redo(deeds: list[object]) -> None:
    past = lived(deeds)
    past.step()
    assert redoable(past.value) == []


@given(DEEDS, st.data())
@settings(max_examples=300)
def test_what_is_pruned_never_leads_anywhere_else(deeds: list[object], data: st.DataObject) -> None:
    """Fewer places to stop at, and still the start at the end."""
    past = lived(deeds)
    free = [g for g in past.groups[1:] if g.head != past.plan.head]
    for group in data.draw(st.lists(st.sampled_from(free), unique_by=id) if free else st.just([])):
        past.forget(group)
    known = {group.resource_states[0].state_hash for group in past.groups}
    while past.redo():
        assert past.content in known
    while past.undo():
        assert past.content in known
    assert past.content == "start"


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
    assert [row for row in rows if row.here] == [row for row in line.rows if row.here]
    assert bool(redoable(past.value)) or not undone


def test_a_step_that_changed_nothing_goes_with_the_change_before_it() -> None:
    past = Past()
    past.step()
    past.step(changes=False)
    stood = past.stands
    past.step()

    past.undo()
    assert past.stands == stood
    past.undo()
    assert past.stands == ("start", 0)
    past.redo()
    assert past.stands == stood


def test_a_step_that_was_half_done_goes_first() -> None:
    past = Past()
    past.step()
    stood = past.stands
    past.fail()

    past.undo()
    assert past.stands == stood


def test_what_was_half_done_and_done_again_is_never_gone_back_to() -> None:
    past = Past()
    past.step()
    stood = past.stands
    past.fail()
    past.step()

    past.undo()
    assert past.stands == stood
    past.undo()
    assert past.stands == ("start", 0)


def test_a_persons_word_is_something_new() -> None:
    past = Past()
    past.step()
    past.undo()
    past.tell()

    assert redoable(past.value) == []


def test_going_back_before_a_change_keeps_what_a_person_said_before_it() -> None:
    past = Past()
    past.step()
    past.tell()
    told = past.plan.head
    past.step()

    past.undo()
    assert past.plan.head == told


def test_a_correction_is_undone_as_a_whole() -> None:
    past = Past()
    past.step()
    past.step()
    stood = past.stands
    past.correct(0)

    past.undo()
    assert past.stands == stood
    past.redo()
    assert past.stands == (past.content, 0)
    assert past.content.startswith("corrected")


def test_redo_goes_along_what_was_left_last() -> None:
    past = Past()
    past.step()
    past.step()
    past.undo()
    past.step()
    newer = past.content
    past.undo()

    past.redo()
    assert past.content == newer


def test_a_label_is_nothing_new() -> None:
    past = Past()
    past.step()
    stood = past.stands
    past.undo()
    past.label()

    past.redo()
    assert past.stands == stood


def test_files_that_nobody_has_recorded_are_a_change_and_something_new() -> None:
    past = Past()
    past.step()
    here = past.plan.head
    past.step()
    past.undo()
    now = {CODE: "edited by hand"}

    assert undoable(past.value, now)[0].head == here
    assert redoable(past.value, now) == []
    assert redoable(past.value) != []


@pytest.mark.parametrize("changes", [1, 2, 3])
def test_where_a_rollback_led_is_known_from_where_it_began(changes: int) -> None:
    past = Past()
    for _ in range(3):
        past.step()
    targets = undoable(past.value)
    past.undo(changes)
    left = past.groups[-1]

    assert leads_back(past.value, targets[changes - 1], left)
    assert not leads_back(past.value, left, targets[changes - 1])


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
