"""Programs of others, as their registries have them: `nox -s neighbours` installs them first."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "w")
