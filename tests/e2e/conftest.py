"""Fixtures of the end-to-end tests: each test has a home and a project of its own."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support import measuring
from tests.support.chat_server import ChatServer
from tests.support.llm_world import SCRIPT, LlmWorld
from tests.support.submodules import WithSubmodules
from tests.support.world import World


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The project and the migrated database that the others are copied from."""
    made = World(tmp_path_factory.mktemp("template"))
    made.agents("plan", "list").ok()
    return made


@pytest.fixture
def world(tmp_path: Path, template: World) -> World:
    return World(tmp_path / "w", template)


@pytest.fixture(scope="session")
def submodules(tmp_path_factory: pytest.TempPathFactory, template: World) -> WithSubmodules:
    """The project with submodules that the others are copied from."""
    return WithSubmodules(World(tmp_path_factory.mktemp("submodules") / "w", template))


@pytest.fixture
def fresh(tmp_path: Path) -> World:
    """Nothing prepared: a HOME as it is before the first command."""
    return World(tmp_path / "fresh")


@pytest.fixture
def unmeasured() -> Generator[None]:
    with measuring.unmeasured():
        yield


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Generator[ChatServer]:
    """A model that says what the script of the test's module says, or else the usual one."""
    with ChatServer() as running:
        running.script(*getattr(request.module, "SCRIPT", SCRIPT))
        yield running


@pytest.fixture
def llm(world: World, server: ChatServer) -> LlmWorld:
    return LlmWorld(world, server)
