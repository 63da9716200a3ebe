"""Undo and redo, killed at every moment: said again, they go where they were going, and no further.

An undo that was on record before the kill is done, and the next one is another.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.crash.test_plan_kills import Scene
from tests.support.histories import KnownPlan
from tests.support.kill_points import PARTS
from tests.support.world import World


@pytest.fixture(params=range(PARTS))
def part(request: pytest.FixtureRequest) -> int:
    return request.param


def said(known: KnownPlan, word: str, *more: str) -> None:
    known.plan.agents(word, "--plan", known.plan.id, *more).ok()


def executed(known: KnownPlan) -> None:
    known.plan.execute().ok()


def undone(known: KnownPlan) -> None:
    executed(known)
    said(known, "undo", "-n", "3")


@pytest.mark.parametrize(
    ("word", "other", "prepare", "begin", "way"),
    [("undo", "redo", executed, -1, -1), ("redo", "undo", undone, -4, 1)],
)
def test_what_was_cut_off_is_done_once(
    quick_path: Path,
    template: World,
    part: int,
    word: str,
    other: str,
    prepare: Callable[[KnownPlan], None],
    begin: int,
    way: int,
) -> None:
    scene = Scene(quick_path / "w", template, prepare)
    known = scene.known
    steps = known.steps

    for point in scene.killed_everywhere(lambda: said(known, word), part):
        on_record = scene.plan.status["last_completed_step"] != steps + begin
        said(known, word)
        expected = begin + way * (2 if on_record else 1)
        assert known.facts() == known.states[expected], point
        said(known, other)
        assert known.facts() == known.states[expected - way], point
        scene.is_sound()


def test_the_other_word_takes_back_what_was_cut_off(
    quick_path: Path, template: World, part: int
) -> None:
    scene = Scene(quick_path / "w", template, undone)
    known = scene.known
    for point in scene.killed_everywhere(lambda: said(known, "redo"), part):
        said(known, "undo")
        # It was finished and taken back, or had not begun: then one further.
        assert known.facts() in (known.states[-4], known.states[-5]), point
        said(known, "redo")
        assert known.facts() in (known.states[-3], known.states[-4]), point
        scene.is_sound()
