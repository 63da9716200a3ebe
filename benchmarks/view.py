"""From Enter to a program's first output, with few ignored files in the project and with many.

    python benchmarks/view.py                       100 and 50 000 ignored files, 11 runs each
    python benchmarks/view.py --runs 25

Two projects, which differ in nothing but how many files `node_modules` holds. By turns, and each
time in the other order, `agents run` is started in each as a process of its own; the time is taken
until the program's first byte has come, and the processor time of the whole command beside it: that
one says the same on a busy machine. Nothing of what is ignored is copied or looked at.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.agents import COMMAND
from tests.support.world import World

AIM = 0.10
_PER_FOLDER = 500
_PROGRAM = ("sh", "-c", "echo first; cat node_modules/0/0.js")


class Taken(Struct, frozen=True):
    """Milliseconds: until the first output, and of the processor for all of it."""

    until_output: float
    processor: float


def furnished(top: Path, files: int) -> World:
    world = World(top)
    (world.project.path / ".gitignore").write_text("node_modules/\n")
    world.project.git("add", "-A")
    world.project.git("commit", "-qm", "ignored")
    for number in range(files):
        folder = world.project.path / f"node_modules/{number // _PER_FOLDER}"
        if not number % _PER_FOLDER:
            folder.mkdir(parents=True)
        (folder / f"{number}.js").write_text("x\n")
    run_once(world)  # what the first command of all makes is made
    return world


def run_once(world: World) -> Taken:
    begun = time.perf_counter()
    process = subprocess.Popen(
        [COMMAND, "run", "--keep", "--", *_PROGRAM],
        cwd=world.project.path,
        env=world.agents.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"f"
    until_output = time.perf_counter() - begun
    process.stdout.read()
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    world.agents("discard", "--yes").ok()
    return Taken(until_output * 1000, (used.ru_utime + used.ru_stime) * 1000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--files", type=int, nargs=2, default=(100, 50_000))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        worlds = [furnished(Path(folder, str(count)), count) for count in asked.files]
        taken: list[list[Taken]] = [[], []]
        for turn in range(asked.runs):
            for which in (0, 1) if turn % 2 else (1, 0):
                taken[which].append(run_once(worlds[which]))
    return told(asked.files, taken)


def told(files: tuple[int, int], taken: list[list[Taken]]) -> int:
    """The exit code: by which of the two the aim is met."""
    outputs = [statistics.median(item.until_output for item in of) for of in taken]
    processor = [statistics.median(item.processor for item in of) for of in taken]
    for count, wall, used in zip(files, outputs, processor, strict=True):
        print(f"{count:>6} ignored files: {wall:.0f} ms to the first output, {used:.0f} ms CPU")
    differs = outputs[1] / outputs[0] - 1
    by_processor = processor[1] / processor[0] - 1
    load = os.getloadavg()[0]
    print(f"differ by {differs:+.1%} ({AIM:.0%} aimed at), by CPU {by_processor:+.1%}")
    print(f"medians of {len(taken[0])} runs each, by turns; load {load:.1f}")
    return 0 if min(differs, by_processor) <= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
