"""Random histories in the user's own tree: an agent, a user, an editor, ways back, and kills.

`IN_PLACE_SEED=17` repeats the one that failed; `IN_PLACE_HISTORIES=500` draws so many.
"""

import contextlib
import os
import random
import shutil
from pathlib import Path

import pytest
from tests.support.in_place_histories import lived
from tests.support.world import World

pytestmark = pytest.mark.usefixtures("unmeasured")

_SHARES = 2
_OPERATIONS = 7


def _seeds(share: int) -> list[int]:
    asked = os.environ.get("IN_PLACE_SEED")
    if asked:
        return [int(asked)] if share == 0 else []
    count = int(os.environ.get("IN_PLACE_HISTORIES", "10"))
    chance = random.SystemRandom()
    return [chance.randrange(1 << 32) for _ in range(share, count, _SHARES)]


@pytest.mark.parametrize("share", range(_SHARES))
def test_nothing_is_lost_in_any_history(tmp_path: Path, template: World, share: int) -> None:
    done = 0
    for seed in _seeds(share):
        with contextlib.chdir("/"):
            assert sum(lived(tmp_path / str(seed), template, seed, _OPERATIONS).values())
        shutil.rmtree(tmp_path / str(seed))
        done += 1
    assert done or os.environ.get("IN_PLACE_SEED")
