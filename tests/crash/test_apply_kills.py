"""An apply over a checkout, a folder and a database, killed at every moment: all or nothing.

Each moment is one at which a kill leaves something else than at any other (`kill_points`). The
scratch folder is not looked at: it holds nothing that another process reads.
"""

import sqlite3
from contextlib import closing

import pytest
from tests.support.apply_kills import kill_applies
from tests.support.kill_points import PARTS, THOROUGH, Point
from tests.support.three_resources import Three


@pytest.mark.parametrize("part", range(PARTS))
def test_an_apply_killed_anywhere_is_finished_or_taken_back(three: Three, part: int) -> None:
    assert kill_applies(three, part, 100, _finished, _taken_back) > 40 // THOROUGH


def _finished(three: Three, point: Point) -> None:
    """By the next command, where nothing stands in its way."""
    answer = three.apply()
    assert answer.code == 0 or answer.error["code"] == "plan-applied", (point, answer)
    assert three.arrived(), point
    assert three.traces() == [], point
    assert three.plan.status["state"] == "applied", point
    three.world.agents("undo", "--yes").ok()
    assert three.without_index() == three.began, point


def _taken_back(three: Three, point: Point) -> bool:
    """By the next command, where the user has changed the last of the three meanwhile."""
    with closing(sqlite3.connect(three.database)) as db:
        db.execute("update t set text = 'mine' where id = 2")
        db.commit()
    first = three.rows()[0][0]
    answer = three.apply()
    assert answer.code == 1, (point, answer)
    after = three.state()
    assert after["code"] == three.before["code"], point
    assert after["assets"] == three.before["assets"], point
    assert three.rows() == [(first,), ("mine",)], point
    # What the user did on top of the plan's work in the database is left as it is, and named.
    expected = {"one": "apply-conflict", "changed": "apply-edits-kept"}[first]
    assert answer.error["code"] == expected, (point, answer)
    assert str(three.database) in answer.error["message"]
    assert three.traces() == [], point
    status = three.plan.status
    assert (status["phase"], status["state"]) == ("apply", "constrained"), point
    assert [item["status"] for item in status["sandboxes"]] == ["ready"] * 3
    three.world.agents("store", "verify").ok()
    return True
