"""What it takes until a step says its first word, with few ignored files in the project and many.

    python benchmarks/view.py                       100 and 50 000 ignored files, 7 runs each
    python benchmarks/view.py --runs 15

Two projects, which differ in nothing but how many files `node_modules` holds. By turns, a plan is
made on each and executed by the command, as a process of its own; the step writes down the time as
its first act. Nothing of what is ignored is copied or looked at, so that both take the same.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.world import World, shell

AIM = 0.10
_PER_FOLDER = 500


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
    world.run(shell("true"))  # what the first command of all makes is made
    return world


def first_word_ms(world: World) -> float:
    """From the start of `plan execute` to what the step does first."""
    told = world.beside / "told"
    plan = world.use(shell(f"date +%s.%N > {told}; cat node_modules/0/0.js", "look"))
    begun = time.time()
    done = world.agents.process("plan", "execute", plan.id)
    assert done.code == 0, done
    return (float(told.read_text()) - begun) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--files", type=int, nargs=2, default=(100, 50_000))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        worlds = [furnished(Path(folder, str(count)), count) for count in asked.files]
        taken: list[list[float]] = [[], []]
        for _ in range(asked.runs):
            for times, world in zip(taken, worlds, strict=True):
                times.append(first_word_ms(world))
    few, many = (statistics.median(times) for times in taken)
    for count, times in zip(asked.files, taken, strict=True):
        print(
            f"{count:>7} ignored files: {statistics.median(times):7.1f} ms, best {min(times):.1f}"
        )
    print(f"difference: {(many - few) / few:+.1%} (aim: within {AIM:.0%})")
    return int(abs(many - few) / few > AIM)


if __name__ == "__main__":
    sys.exit(main())
