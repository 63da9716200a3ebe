"""Some power cuts on a real file system: what was told is there, and people can go on.

`nox -s power` has hundreds of them, on three file systems (docs/testing.md).
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.power.machine import Loop, free_loop, missing, own_mounts
from tests.support.power.recording import record
from tests.support.power.states import States, drawn

# By scenario, and of how many places they are drawn.
STATES = {"three": (12, 24), "in-place": (3, 24)}
_WRONG = missing("ext4")
if "CLEVERAGENTS_TEST_POWER" not in os.environ:
    # Steps of other tests see copies of our mounts, and keep an old state in use with them.
    _WRONG = [
        *_WRONG,
        "not beside other tests (CLEVERAGENTS_TEST_POWER=1 says that there are none)",
    ]
pytestmark = pytest.mark.skipif(bool(_WRONG), reason="no power cuts here: " + "; ".join(_WRONG))


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    own_mounts()  # steps of other tests would keep ours in use with the copies that they see
    with free_loop() as found:
        yield found


@pytest.mark.parametrize("scenario", STATES)
def test_nothing_that_was_told_is_lost_in_a_power_cut(
    loop: Loop, tmp_path: Path, scenario: str
) -> None:
    states = States(record(tmp_path, scenario, "ext4", loop, None), loop, seed=1)
    count, points = STATES[scenario]
    cuts = drawn(states.recording, points, seed=1)
    sample = sorted(random.Random(1).sample(cuts, count), key=lambda cut: cut.point)

    results = [states.judge(cut) for cut in sample]

    assert [result for result in results if result["findings"]] == []
