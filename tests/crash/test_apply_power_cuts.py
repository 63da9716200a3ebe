"""The power is cut during an apply, or after it: what was reported done is there."""

import os
from pathlib import Path

import pytest
from tests.support.kill_points import PARTS, kill_points, killed, share
from tests.support.power_cuts import Syncs
from tests.support.three_resources import Three


@pytest.fixture
def syncs(three: Three, tmp_path: Path) -> Syncs:
    return Syncs(three.world.top, tmp_path / "synced")


@pytest.mark.parametrize("part", range(PARTS))
def test_an_apply_is_finished_wherever_the_power_was_cut(
    three: Three, syncs: Syncs, part: int
) -> None:
    three.reset()
    points = kill_points(lambda: three.apply().ok(), watched=three.watched)
    for point in share(points, part, PARTS):
        three.reset()
        killed(syncs.noted(three.apply), point)
        lost = syncs.lose()
        answer = three.apply()
        assert answer.code == 0 or answer.error["code"] == "plan-applied", (point, lost, answer)
        assert three.arrived(), (point, lost)
        assert three.traces() == [], (point, lost)
        assert three.world.project.git("fsck", "--no-dangling") == "", (point, lost)


def test_an_apply_that_has_returned_is_on_the_disk(three: Three, syncs: Syncs) -> None:
    three.reset()
    child = os.fork()
    if not child:
        os._exit(syncs.noted(three.apply)().code)  # type: ignore[attr-defined]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    lost = syncs.lose()
    assert three.arrived(), lost
    assert three.world.project.git("fsck", "--no-dangling") == "", lost
