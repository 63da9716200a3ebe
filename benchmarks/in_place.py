"""In place beside opencode and beside a sandbox: the first group, one changed file, and idleness.

    python benchmarks/in_place.py                   10 k files, 5 rounds
    python benchmarks/in_place.py --files 1000 --idle 10

By turns on copies of one tree, in a process that runs: our first group of the user's own tree and
the first snapshot of opencode, as the git commands that it runs; a checkpoint of one changed file
in place and in a sandbox; then the processor time of watching while nothing happens.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.first import processor, taken
from benchmarks.peers.opencode import Opencode
from benchmarks.peers.ours import Engine
from benchmarks.peers.places import Place
from benchmarks.peers.trees import Template
from benchmarks.workers import adapters_in, resource_of
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

AIM_FIRST, AIM_CHANGED = 2.0, 1.2
CHANGES = 40


class InPlace:
    """The user's own tree, in one process that stays."""

    def __init__(self, place: Place) -> None:
        self.tree = place.project
        self._resource = resource_of(self.tree, self.tree, "")
        adapters = adapters_in(place.store)
        adapters.of(self._resource).sandbox.create(self._resource)
        self._manager = CheckpointManager(adapters)

    def snapshot(self) -> str:
        return self._manager.capture(self._resource).ref

    def close(self) -> None:
        self._manager.close()


def first_groups(template: Template, top: Path, rounds: int) -> tuple[float, float]:
    """Medians of ours and of opencode's, in milliseconds."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(rounds + 1):
        with _copy(template, top / "theirs") as place:
            other = taken(Opencode(place).snapshot)[0]
        with _copy(template, top / "ours") as place:
            tree = InPlace(place)
            own = taken(tree.snapshot)[0]
            tree.close()
        if number:  # the first has imports in it
            ours.append(own)
            theirs.append(other)
    return statistics.median(ours), statistics.median(theirs)


def one_changed(template: Template, top: Path) -> tuple[float, float]:
    """Medians in place and in a sandbox, in milliseconds."""
    with _copy(template, top / "place") as one, _copy(template, top / "sandbox") as two:
        sides = [InPlace(one), Engine(two)]
        times: list[list[float]] = [[], []]
        for side in sides:
            side.snapshot()
        time.sleep(0.2)
        for number in range(CHANGES):
            for side, found in zip(sides, times, strict=True):
                template.change(side.tree, 1, f"change {number}")
                found.append(taken(side.snapshot)[0])
        for side in sides:
            side.close()
    return statistics.median(times[0]), statistics.median(times[1])


def idle(template: Template, top: Path, seconds: float) -> float:
    """Milliseconds of the processor."""
    with _copy(template, top / "idle") as place:
        tree = InPlace(place)
        tree.snapshot()
        used = processor()
        time.sleep(seconds)
        used = processor() - used
        tree.close()
    return used * 1000


@contextmanager
def _copy(template: Template, top: Path) -> Generator[Place]:
    place = template.copy(top)
    os.sync()
    time.sleep(0.3)
    try:
        yield place
    finally:
        shutil.rmtree(top)


def _ratio(name: str, ours: float, theirs: float, other: str, aim: float) -> bool:
    print(f"{name}: {ours:.2f} ms, {other} {theirs:.2f} ms: {ours / theirs:.2f}x (aim {aim:g}x)")
    return ours <= aim * theirs


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--idle", type=float, default=5.0, help="seconds")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where to make the trees")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="in-place-", dir=asked.folder) as folder:
        top = Path(folder)
        template = Template(top / "template", asked.files)
        print(f"{asked.files} files, load {os.getloadavg()[0]:.1f}")
        first = first_groups(template, top, asked.rounds)
        met = _ratio("first group", *first, "opencode", AIM_FIRST)
        changed = one_changed(template, top)
        met &= _ratio("one file changed", *changed, "in a sandbox", AIM_CHANGED)
        used = idle(template, top, asked.idle)
        print(f"idle for {asked.idle:g} s: {used:.1f} ms of the processor")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
