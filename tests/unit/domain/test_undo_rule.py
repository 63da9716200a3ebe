"""Where undo and redo lead to: over every history that the services can make."""

import pytest
from domain_builders import CODE
from hypothesis import given, settings
from hypothesis import strategies as st
from undo_model import DEEDS, Past, lived

from cleveragents.domain.undo import leads_back, redoable, undoable


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
