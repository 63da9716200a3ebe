"""How long `agents --help` and `agents plan status` take, as multiples of `python -c pass`.

All three are measured in turn in one run, because machines are noisy and only ratios last.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 15
AIMS = {"agents --help": 6.0, "agents plan status": 15.0}
AGENTS = str(Path(sys.executable).with_name("agents"))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        plan_id, environ = _finished_plan(Path(folder))
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "agents --help": [AGENTS, "--help"],
            "agents plan status": [AGENTS, "plan", "status", plan_id],
        }
        times = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                times[name].append(_seconds(command, environ))
    bare = statistics.median(times["python -c pass"])
    print(f"python -c pass       {bare * 1000:7.1f} ms")
    for name, aim in AIMS.items():
        taken = statistics.median(times[name])
        print(f"{name:20} {taken * 1000:7.1f} ms  {taken / bare:5.1f} x   (aim: <= {aim:g} x)")
    return 0


def _finished_plan(folder: Path) -> tuple[str, dict[str, str]]:
    project, home = folder / "project", folder / "home"
    project.mkdir()
    home.mkdir()
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    for words in ("init -q", "commit -q --allow-empty -m first"):
        identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
        git = shutil.which("git") or "git"
        subprocess.run([git, *identity, *words.split()], cwd=project, env=environ, check=True)
    (folder / "action.yaml").write_text(
        "name: bench\ndescription: one file\n"
        "resources: {code: {type: git-checkout, path: .}}\n"
        "steps: [{tool: file.write, with: {path: a.txt, content: a}}]\n"
    )
    used = _run(["--format", "json", "plan", "use", str(folder / "action.yaml")], project, environ)
    plan_id = used.split('"plan_id": "')[1].split('"')[0]
    _run(["plan", "execute", plan_id], project, environ)
    return plan_id, environ


def _run(words: list[str], project: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(
        [AGENTS, *words], cwd=project, env=environ, check=True, capture_output=True, text=True
    )
    return done.stdout


def _seconds(command: list[str], environ: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
