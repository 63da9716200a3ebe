"""Undo and redo of an apply over three resources, killed at every moment: one side or the other.

What an apply keeps is there as soon as it is on record: `test_apply_kills` undoes what it finished.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.agents import Answer
from tests.support.kill_points import PARTS, THOROUGH, Point, kill_points, killed, share
from tests.support.three_resources import Three


class Sides:
    """The world before the word is said, and what the project is on either side of it."""

    def __init__(self, three: Three, word: str) -> None:
        self.three, self.word = three, word
        three.reset()
        self.here = three.without_index()
        three.apply().ok()
        self.there, self.here = self.here, three.without_index()
        if word == "redo":
            three.world.agents("undo", "--yes").ok()
            self.there, self.here = self.here, three.without_index()
        self.begun: Path = three.copy(word)

    def say(self) -> Answer:
        return self.three.world.agents(self.word, "--yes")

    def reset(self, copy: Path | None = None) -> None:
        self.three.reset(copy or self.begun)

    @property
    def state(self) -> str:
        return self.three.plan.status["apply"]["state"]


@pytest.mark.parametrize("word", ["undo", "redo"])
@pytest.mark.parametrize("part", range(PARTS))
def test_a_move_killed_anywhere_is_finished_or_taken_back(
    three: Three, word: str, part: int
) -> None:
    sides = Sides(three, word)
    sides.reset()
    points = kill_points(lambda: sides.say().ok(), watched=three.watched)
    assert three.without_index() == sides.there
    assert len(points) > 80
    taken_back = 0
    for point in share(points, part, PARTS):
        sides.reset()
        killed(sides.say, point)
        if sides.state == "interrupted":
            left = three.copy("killed")
            _taken_back(sides, point)
            sides.reset(left)
            taken_back += 1
        _finished(sides, point)
    assert taken_back > 20 // THOROUGH


def _finished(sides: Sides, point: Point) -> None:
    answer = sides.say()
    over = {"undo": "apply-undone", "redo": "nothing-to-redo"}[sides.word]
    assert answer.code == 0 or answer.error["code"] == over, (point, answer)
    assert sides.three.without_index() == sides.there, point
    assert sides.three.traces() == [], point
    other = {"undo": "redo", "redo": "undo"}[sides.word]
    sides.three.world.agents(other, "--yes").ok()
    assert sides.three.without_index() == sides.here, point
    sides.three.world.agents("doctor").ok()


def _taken_back(sides: Sides, point: Point) -> None:
    """By the next command, where the user has changed the last of the three meanwhile."""
    three = sides.three
    with closing(sqlite3.connect(three.database)) as db:
        db.execute("update t set text = 'mine' where id = 2")
        db.commit()
    answer = sides.say()
    assert answer.code == 1, (point, answer)
    assert answer.error["code"] == "undo-blocked", (point, answer)
    after = three.without_index()
    assert {**after, "database": ""} == {**sides.here, "database": ""}, point
    assert three.rows()[1] == ("mine",), point
    assert three.traces() == [], point
    assert sides.state == {"undo": "applied", "redo": "undone"}[sides.word]
