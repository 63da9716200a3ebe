"""A plan that publishes a page, and what the ledger says about it."""

import pytest
from fakes import Killed
from service_world import ServiceWorld

from cleveragents.domain.action import Step


def book(line: str = "a") -> Step:
    return Step(name="book", tool="book", arguments={"line": line})


def states(world: ServiceWorld) -> list[str]:
    return [effect.state.value for effect in world.effects]


def ran(world: ServiceWorld) -> list[str]:
    return [name for name, _ in world.tools.ran]


def killed(world: ServiceWorld, call: str = "wrote a file") -> ServiceWorld:
    world.faults.fail(call, Killed())
    with pytest.raises(Killed):
        world.run()
    world.restart()
    return world
