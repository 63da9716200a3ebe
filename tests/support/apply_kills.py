"""An apply killed at each moment of one share, and what the next command makes of what is left."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from tests.support.agents import Answer
from tests.support.kill_points import PARTS, Point, kill_points, killed, share
from tests.support.world import PlanHandle


class Killable(Protocol):
    """A plan to apply, whose whole world can be put back to the moment before that."""

    plan: PlanHandle

    @property
    def watched(self) -> Sequence[Path]: ...
    def apply(self) -> Answer: ...
    def arrived(self) -> bool: ...
    def copy(self, name: str) -> Path: ...
    def reset(self, copy: Path | None = None) -> None: ...


K = TypeVar("K", bound=Killable)


def kill_applies(
    world: K,
    part: int,
    least: int,
    finished: Callable[[K, Point], object],
    taken_back: Callable[[K, Point], bool],
) -> int:
    """There are more than `least` moments. Whatever one leaves is `finished`; what is not applied
    by then is `taken_back` as well, of which the number comes back."""
    world.reset()
    points = kill_points(lambda: world.apply().ok(), watched=world.watched)
    assert world.arrived()
    assert len(points) > least
    undone = 0
    for point in share(points, part, PARTS):
        world.reset()
        killed(world.apply, point)
        if world.plan.status["state"] != "applied":
            left = world.copy("killed")
            undone += taken_back(world, point)
            world.reset(left)
        finished(world, point)
    return undone
