"""Fixtures of the attacks: a home and a project each, on a machine that can confine."""

import os
import sys
from pathlib import Path

import pytest

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.world import World

from cleveragents.infrastructure.confinement.machine import Machine

HERE = Machine(os.environ["PATH"])


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("template"))
    made.agents("plan", "list").ok()
    return made


@pytest.fixture
def world(tmp_path: Path, template: World) -> World:
    if HERE.landlock < 6 or not HERE.read_only_view or not HERE.socket_filter:
        pytest.skip("this kernel cannot hold a command inside")
    return World(tmp_path / "w", template)
