"""From nothing to the first snapshot, beside what git takes to check out the same tree.

    python benchmarks/first.py                      10 k files, 5 rounds
    python benchmarks/first.py --files 100000 --rounds 3

By turns on copies of one tree: `git worktree add`; our sandbox and its first snapshot, in a process
that runs already; `plan use` and `plan execute` of one step that does nothing; and
`agents run -- true`, both from Enter to the exit code, with `agents --version` beside them for what
it takes to start. Times are medians; processor time is that of all processes. Ratios are ours by
git's.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.peers.ours import ACTION, AGENTS, Engine
from benchmarks.peers.places import Place
from benchmarks.peers.trees import Template

AIM = 1.4
GIT, SANDBOX, PLAN, RUN, START = (
    "git worktree add",
    "sandbox and first snapshot",
    "plan use and plan execute",
    "agents run -- true",
    "start of a command",
)
Times = dict[str, list[tuple[float, float]]]


def processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def taken(task: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the clock, and of the processor."""
    used, begun = processor(), time.perf_counter()
    task()
    return (time.perf_counter() - begun) * 1000, (processor() - used) * 1000


class Round:
    """Each task has a copy of the tree to itself."""

    def __init__(self, template: Template, top: Path) -> None:
        self._template, self._top = template, top

    def run(self, times: Times) -> None:
        for name, task in (
            (GIT, self._worktree),
            (SANDBOX, self._engine),
            (PLAN, self._plan),
            (RUN, self._run),
            (START, self._start),
        ):
            place = self._template.copy(self._top / "place")
            os.sync()
            time.sleep(0.3)
            try:
                times.setdefault(name, []).append(task(place))
            finally:
                shutil.rmtree(self._top / "place")

    def _worktree(self, place: Place) -> tuple[float, float]:
        return taken(lambda: place.run("git", "worktree", "add", "-q", "--detach", place.top / "w"))

    def _engine(self, place: Place) -> tuple[float, float]:
        made: list[Engine] = []

        def first() -> None:
            made.append(Engine(place))
            made[0].snapshot()

        found = taken(first)
        made[0].close()
        return found

    def _plan(self, place: Place) -> tuple[float, float]:
        action = place.top / "action.json"
        action.write_text(json.dumps(ACTION))
        self._agents(place, "plan", "list")  # what the first command of all makes is made

        def both() -> None:
            self._agents(place, "plan", "use", str(action))
            self._agents(place, "plan", "execute", "latest")

        return taken(both)

    def _run(self, place: Place) -> tuple[float, float]:
        self._agents(place, "plan", "list")
        return taken(lambda: self._agents(place, "run", "--keep", "--", "true"))

    def _start(self, place: Place) -> tuple[float, float]:
        return taken(lambda: self._agents(place, "--version"))

    def _agents(self, place: Place, *words: str) -> None:
        subprocess.run(
            [AGENTS, "--data-dir", str(place.store / "data"), *words],
            cwd=place.project,
            env=place.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )


def told(times: Times) -> int:
    """The exit code: whether the aim is met by the clock, or else by processor time."""
    wall = {name: statistics.median(t[0] for t in each) for name, each in times.items()}
    used = {name: statistics.median(t[1] for t in each) for name, each in times.items()}
    for name in times:
        ratio, by_processor = wall[name] / wall[GIT], used[name] / used[GIT]
        print(f"{name:<28} {wall[name]:8.0f} ms  {ratio:5.2f}x  CPU {used[name]:8.0f} ms", end="")
        print(f"  {by_processor:5.2f}x", flush=True)
    print(f"aim: {SANDBOX} at most {AIM}x; load {os.getloadavg()[0]:.1f}")
    return 0 if wall[SANDBOX] <= AIM * wall[GIT] else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where to make the trees")
    asked = parser.parse_args()
    times: Times = {}
    with tempfile.TemporaryDirectory(prefix="first-", dir=asked.folder) as folder:
        template = Template(Path(folder, "template"), asked.files)
        # What is imported at first use is no part of it: a process that runs has it.
        Round(template, Path(folder)).run({})
        for _ in range(asked.rounds):
            Round(template, Path(folder)).run(times)
    print(f"{asked.files} files, medians of {asked.rounds}")
    return told(times)


if __name__ == "__main__":
    sys.exit(main())
