"""Fixtures of the crash tests: worlds in memory, as hundreds of them are made and thrown away."""

import os
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support import measuring
from tests.support.three_resources import Three
from tests.support.world import World

_MEMORY = "/dev/shm"


@pytest.fixture(autouse=True)
def unmeasured() -> Generator[None]:
    with measuring.unmeasured():
        yield


@pytest.fixture
def quick_path() -> Generator[Path]:
    """On a disk in memory where there is one: nothing here needs its bytes tomorrow."""
    usable = Path(_MEMORY).is_dir() and os.access(_MEMORY, os.W_OK)
    with tempfile.TemporaryDirectory(dir=_MEMORY if usable else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The project and the migrated database that the others are copied from."""
    made = World(tmp_path_factory.mktemp("template"))
    made.agents("plan", "list").ok()
    return made


@pytest.fixture
def three(quick_path: Path, template: World) -> Three:
    return Three(World(quick_path / "w", template))
