"""A dozen power cuts on a real file system: what was told is there, and people can go on.

`nox -s power` has hundreds of them, on three file systems (docs/testing.md).
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.power.machine import free_loop, missing, own_mounts
from tests.support.power.recording import record
from tests.support.power.states import States, drawn

STATES = 12
_WRONG = missing("ext4")
if "CLEVERAGENTS_TEST_POWER" not in os.environ:
    # Steps of other tests see copies of our mounts, and keep an old state in use with them.
    _WRONG = [
        *_WRONG,
        "not beside other tests (CLEVERAGENTS_TEST_POWER=1 says that there are none)",
    ]
pytestmark = pytest.mark.skipif(bool(_WRONG), reason="no power cuts here: " + "; ".join(_WRONG))


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[States]:
    folder: Path = tmp_path_factory.mktemp("power")
    own_mounts()  # steps of other tests would keep ours in use with the copies that they see
    with free_loop() as loop:
        yield States(record(folder, "three", "ext4", loop, None), loop, seed=1)


def test_nothing_that_was_told_is_lost_in_a_power_cut(states: States) -> None:
    cuts = drawn(states.recording, 2 * STATES, seed=1)
    sample = sorted(random.Random(1).sample(cuts, STATES), key=lambda cut: cut.point)

    results = [states.judge(cut) for cut in sample]

    assert [result for result in results if result["findings"]] == []
