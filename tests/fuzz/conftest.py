"""Fixtures of the fuzzers: one world for all inputs of a test, in which no bug may show."""

import contextlib
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support import measuring
from tests.support.world import PlanHandle, World, shell, write


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The project and the migrated database that the others are copied from."""
    made = World(tmp_path_factory.mktemp("template"))
    made.agents("plan", "list").ok()
    return made


@pytest.fixture(scope="module", autouse=True)
def unmeasured() -> Generator[None]:
    with measuring.unmeasured(), contextlib.chdir("/"):
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, template: World) -> Generator[World]:
    made = World(tmp_path_factory.mktemp("fuzz") / "w", template)
    made.agents("plan", "list").ok()  # whoever opens the database first makes our folders
    yield made
    reports = sorted(made.agents.data_dir.glob("crashes/*"))
    assert not reports, reports[0].read_text()


@pytest.fixture(scope="module")
def plan(world: World) -> PlanHandle:
    return world.run(write("a", "1", "one"), shell("echo 2 > b", "two"))
