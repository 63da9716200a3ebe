"""Fixtures of the conformance suite: one world for each type of resource that is registered.

A type that is registered and has no case here fails the suite: it has to be told how one of its
resources is made, worked on and looked at, and nothing else.
"""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[2]))

from resource_world import CASES, ResourceWorld
from tests.support import measuring
from tests.support.toy_resource import NOTE, NoteAdapter

from cleveragents.domain import resource_kinds
from cleveragents.infrastructure.sandbox import registry


@pytest.fixture(autouse=True)
def _toy() -> Generator[None]:
    """Only while these tests run: to others of this process there is no such type."""
    registry.register(NOTE, NoteAdapter)
    yield
    del registry._MAKERS[NOTE.type], resource_kinds._KINDS[NOTE.type]


@pytest.fixture(params=CASES)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[ResourceWorld]:
    made = ResourceWorld(tmp_path / "w", request.param)
    yield made
    made.close()


@pytest.fixture
def unmeasured() -> Generator[None]:
    with measuring.unmeasured():
        yield
