"""What `plan apply` of ten changed files and `plan discard` cost in a small tree and a large one.

    python benchmarks/finishing.py                  100 and 10 k files
    python benchmarks/finishing.py --folder /dev/shm --rounds 9

Both projects are packed, as a clone is. Every plan changes ten files by one shell step; both trees
take turns, and the start of the command is part of each figure. What is left of a discarded sandbox
is looked for half a minute after the last one.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

AGENTS = str(Path(sys.executable).with_name("agents"))
IDENTITY = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
FILES_PER_FOLDER = 15
SMALL, CHANGED = 100, 10
AIMS = {"apply": (1500.0, 2.0), "discard": (500.0, 0.0)}
PATIENCE_SECONDS = 30


class Cost(NamedTuple):
    milliseconds: float
    processor: float


class World:
    """A project of so many files, and a home of its own."""

    def __init__(self, top: Path, files: int) -> None:
        self.project, self.home = top / "project", top / "home"
        self.home.mkdir(parents=True)
        for number in range(files):
            path = self.project / f"d{number // FILES_PER_FOLDER}" / f"f{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{number}\n" * 20)
        self._environ = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        (self.home / ".gitconfig").write_text("[user]\nname = Bench\nemail = bench@example.org\n")
        for words in ("init -q", "add -A", "commit -q -m first", "repack -q -a -d"):
            argv = ["git", *IDENTITY, *words.split()]
            subprocess.run(argv, cwd=self.project, env=self._environ, check=True)

    def executed(self, stamp: str) -> str:
        """A plan that has changed ten files."""
        names = [f"d{n // FILES_PER_FOLDER}/f{n}.txt" for n in range(CHANGED)]
        command = f"for name in {' '.join(names)}; do echo {stamp} >> $name; done"
        action = {
            "name": "ten",
            "description": "ten files",
            "resources": {"code": {"type": "git-checkout", "path": "."}},
            "steps": [{"name": "change", "tool": "shell", "with": {"command": command}}],
        }
        path = self.home / "action.json"
        path.write_text(json.dumps(action))
        plan = self.agents("plan", "use", str(path))["plan_id"]
        self.agents("plan", "execute", plan)
        return plan

    def agents(self, *words: str) -> dict[str, str]:
        argv = [AGENTS, "--format", "json", *words]
        done = subprocess.run(
            argv, cwd=self.project, env=self._environ, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"agents {' '.join(words)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)["data"]

    def leftovers(self) -> list[str]:
        data = self.home / ".cleveragents"
        places = [*data.glob("sandboxes/*"), *data.glob("trash/[!.]*")]
        return [str(path.relative_to(data)) for path in places]


def cost_of(task: Callable[[], object]) -> Cost:
    before, start = _processor(), time.perf_counter()
    task()
    taken = (time.perf_counter() - start) * 1000
    return Cost(taken, (_processor() - before) * 1000)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(worlds: dict[int, World], verb: str, rounds: int) -> None:
    costs: dict[int, list[Cost]] = {files: [] for files in worlds}
    for number in range(rounds):
        for files, world in worlds.items():
            plan = world.executed(f"{verb}{number}")
            time.sleep(1)  # what was written in this second is looked at twice
            costs[files].append(cost_of(lambda w=world, p=plan: w.agents("plan", verb, "--yes", p)))
    walls = {f: statistics.median(c.milliseconds for c in found) for f, found in costs.items()}
    used = {f: statistics.median(c.processor for c in found) for f, found in costs.items()}
    told = [f"{f} files {walls[f]:.0f} ms ({used[f]:.0f} ms of processor)" for f in worlds]
    large = max(worlds)
    most, ratio = AIMS[verb]
    aim = f"aim: {most:.0f} ms" + (f", {ratio:g} times" if ratio else "")
    print(f"{verb}: {'; '.join(told)}; {walls[large] / walls[SMALL]:.2f} times; {aim}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where to work")
    arguments = parser.parse_args()
    print(f"{CHANGED} files changed; load {os.getloadavg()[0]:.1f}; medians of {arguments.rounds}")
    with tempfile.TemporaryDirectory(prefix="finishing-", dir=arguments.folder) as folder:
        sizes = (SMALL, arguments.files)
        worlds = {files: World(Path(folder) / str(files), files) for files in sizes}
        for verb in AIMS:
            measure(worlds, verb, arguments.rounds)
        time.sleep(PATIENCE_SECONDS)
        left = [name for world in worlds.values() for name in world.leftovers()]
        print(f"left after {PATIENCE_SECONDS} s: {', '.join(left) or 'nothing'}")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
