"""How long commands take from nothing to their answer, as multiples of `python -c pass`.

All are measured in turn in one run, because machines are noisy and only ratios last. The plan works
on a repository of a thousand files; before each rollback one file is changed by the plan itself.
"""

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 15
FILES = 1000
BARE = "python -c pass"
AIMS = {
    "--help": 4.0,
    "plan status": 6.0,
    "plan checkpoint list": 7.0,
    "plan checkpoint create": 10.0,
    "plan rollback": 12.0,
}
CHANGING = ("plan checkpoint create", "plan rollback")
AGENTS = str(Path(sys.executable).with_name("agents"))
ACTION = """
name: bench
description: one file
resources: {code: {type: git-checkout, path: .}}
steps: [{tool: file.write, with: {path: a.txt, content: a}}]
"""


class Bench:
    """A project, a home and a plan that has written one file."""

    def __init__(self, folder: Path) -> None:
        self.project, home = folder / "project", folder / "home"
        self.project.mkdir()
        home.mkdir()
        self.environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
        self._make_repository()
        (folder / "action.yaml").write_text(ACTION)
        used = self.run("--format", "json", "plan", "use", str(folder / "action.yaml"))
        self.plan_id = json.loads(used)["data"]["plan_id"]
        self.run("plan", "execute", self.plan_id)
        status = json.loads(self.run("--format", "json", "plan", "status", self.plan_id))
        self.sandbox = Path(status["data"]["sandboxes"][0]["path"])
        self._contents = itertools.count()

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [AGENTS, *words],
            cwd=self.project,
            env=self.environ,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def change_one_file(self) -> None:
        (self.sandbox / "f0" / "0.txt").write_text(f"changed {next(self._contents)}\n")

    def target(self) -> str:
        """The checkpoint of the state that is there now."""
        made = self.run(
            "--format", "json", "plan", "checkpoint", "create", "--label", "bench", self.plan_id
        )
        return json.loads(made)["data"]["group_id"]

    def seconds(self, *command: str) -> float:
        started = time.perf_counter()
        subprocess.run(
            command, cwd=self.project, env=self.environ, check=True, stdout=subprocess.DEVNULL
        )
        return time.perf_counter() - started

    def _make_repository(self) -> None:
        for number in range(FILES):
            file = self.project / f"f{number // 100}" / f"{number}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"file {number}\n" * 20)
        git = shutil.which("git") or "git"
        identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
        for words in ("init -q", "add .", "commit -q -m first"):
            subprocess.run(
                [git, *identity, *words.split()], cwd=self.project, env=self.environ, check=True
            )


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        times = _measured(Bench(Path(folder)))
    bare = times[BARE]
    print(f"{BARE:22} {bare * 1000:7.1f} ms")
    for name, aim in AIMS.items():
        print(f"{name:22} {times[name] * 1000:7.1f} ms {times[name] / bare:5.1f} x (<= {aim:g} x)")
    return 0


def _measured(bench: Bench) -> dict[str, float]:
    target = bench.target()
    times: dict[str, list[float]] = {name: [] for name in (BARE, *AIMS)}
    for number in range(ROUNDS):
        times[BARE].append(bench.seconds(sys.executable, "-c", "pass"))
        for name in AIMS:
            if name in CHANGING:
                bench.change_one_file()
            rest = _arguments(name, bench.plan_id, target, number)
            times[name].append(bench.seconds(AGENTS, *name.split(), *rest))
    return {name: statistics.median(taken) for name, taken in times.items()}


def _arguments(name: str, plan_id: str, target: str, number: int) -> list[str]:
    match name:
        case "--help":
            return []
        case "plan checkpoint create":
            return ["--label", f"bench {number}", plan_id]
        case "plan rollback":
            return ["--yes", plan_id, target]
        case _:
            return [plan_id]


if __name__ == "__main__":
    sys.exit(main())
