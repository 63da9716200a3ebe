"""What checkpoints add to each step, and whether a long plan stays as fast as a short one.

    python benchmarks/steps.py                      10 k files; 100, 300 and 1000 steps
    python benchmarks/steps.py --shell --steps 60   the same by a command in each step

Each step writes one small file. The same plan runs in turn, several times each way: as it is, with
a checkpoint group at each decision, before and after each write; and with checkpoints switched off,
where what is left is the tool, the record of the step, and the boundary to which a crash is undone.
Everything goes through the command, and the time that starting it takes is in none of the figures.
"""

import argparse
import itertools
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import datetime
from pathlib import Path

AGENTS = str(Path(sys.executable).with_name("agents"))
FILES_PER_FOLDER = 15
AIM_MS = 5.0


class World:
    """A project with many files, and a home in which every plan starts anew."""

    def __init__(self, top: Path, files: int, *, shell: bool) -> None:
        self._shell = shell
        self.project, self.home = top / "project", top / "home"
        self.home.mkdir()
        for number in range(files):
            path = self.project / f"d{number // FILES_PER_FOLDER}" / f"f{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{number}\n" * 20)
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        for words in ("init -q", "add -A", "commit -q -m first"):
            identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
            subprocess.run(
                ["git", *identity, *words.split()], cwd=self.project, env=self.environ, check=True
            )

    def run(self, steps: int, *, checkpoints: bool) -> list[float]:
        """Milliseconds from the end of each step to the end of the next."""
        action = {
            "name": f"{steps}-steps",
            "description": "many small steps",
            "resources": {"code": {"type": "git-checkout", "path": "."}},
            "rollback_policy": {"enabled": checkpoints},
            "steps": [_step(number, shell=self._shell) for number in range(steps)],
        }
        path = self.home / "action.json"
        path.write_text(json.dumps(action))
        plan = self.agents("plan", "use", str(path))["plan_id"]
        triggers = {} if checkpoints else {"CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON": ""}
        self.agents("plan", "execute", plan, **triggers)
        ends = self._ends(plan)
        return [(after - before) * 1000 for before, after in itertools.pairwise(ends)]

    def _ends(self, plan: str) -> list[float]:
        with closing(sqlite3.connect(self.home / ".cleveragents" / "cleveragents.db")) as db:
            rows = db.execute(
                "SELECT finished_at FROM tool_calls WHERE plan_id=? ORDER BY seq", (plan,)
            ).fetchall()
        return [datetime.fromisoformat(moment).timestamp() for (moment,) in rows]

    def agents(self, *words: str, **extra: str) -> dict[str, str]:
        done = subprocess.run(
            [AGENTS, "--format", "json", *words],
            cwd=self.project,
            env={**self.environ, **extra},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"agents {' '.join(words)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)["data"]


def _step(number: int, *, shell: bool) -> dict[str, object]:
    if shell:
        command = f"echo {number} > f{number % 7}.txt"
        return {
            "name": f"s{number}",
            "tool": "shell",
            "with": {"resource": "code", "command": command},
        }
    arguments = {"resource": "code", "path": f"new/f{number}.txt", "content": f"{number}\n"}
    return {"name": f"write {number}", "tool": "file.write", "with": arguments}


def _growth(times: list[float]) -> float:
    tenth = max(1, len(times) // 10)
    return statistics.median(times[-tenth:]) / statistics.median(times[:tenth])


def main() -> None:
    parser = argparse.ArgumentParser(description="What checkpoints add to each step.")
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shell", action="store_true", help="each step runs a command")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{arguments.files} files, one written by each step; load {load:.1f}; median ms per step")
    print("steps     with    without    added   last tenth / first tenth")
    with tempfile.TemporaryDirectory(prefix="steps-") as folder:
        world = World(Path(folder), arguments.files, shell=arguments.shell)
        for steps in arguments.steps:
            # In turn, since a disk is faster in one minute than in the next.
            runs = [
                (world.run(steps, checkpoints=False), world.run(steps, checkpoints=True))
                for _ in range(arguments.rounds)
            ]
            bare = statistics.median(statistics.median(without) for without, _ in runs)
            whole = statistics.median(statistics.median(times) for _, times in runs)
            grown = statistics.median(_growth(times) for _, times in runs)
            print(
                f"{steps:5} {whole:8.2f} {bare:10.2f} {whole - bare:8.2f}   {grown:.2f}", flush=True
            )
    print(f"aim: checkpoints add less than {AIM_MS:g} ms per step, and a long plan is no slower")


if __name__ == "__main__":
    main()
