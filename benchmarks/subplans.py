"""Prints what child plans cost: how parallel they really run, and what branching a sandbox takes.

usage: python -m benchmarks.subplans [--files 1000,10000,100000] [--folder DIR]

Branching is compared with `git worktree add` of the same size, in turns, the best of three each:
other work on the machine can only make a turn slower. Disk is what `du` says the new folder takes,
which counts shared blocks (reflinks) as if they were not; `shared` says whether the file system
can share, and then how much of the copy it does (by `df`).
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

AGENTS = Path(sys.executable).with_name("agents")
ROUNDS = 3
IDENTITY = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", default="1000,10000,100000")
    parser.add_argument("--folder", default=None, help="where to work; default: the temp folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="subplans-") as name:
        top = Path(name)
        print_parallel(top / "parallel")
        print(f"\nfile system of {top}: {'shares' if can_share(top) else 'cannot share'} blocks")
        row = "{:>8}  {:>22}  {:>12}  {:>16}  {:>14}"
        print(row.format("files", "what", "seconds", "disk MB (du)", "disk MB (df)"))
        for count in (int(text) for text in options.files.split(",")):
            print_branching(top / f"branch-{count}", count, row)


def print_parallel(top: Path) -> None:
    project = make_project(top / "project", 20)
    child = {"tool": "shell", "with": {"command": "sleep 1"}}
    plans = [{"name": f"c{i}", "steps": [child]} for i in range(8)]
    for at_once in (1, 4, 8):
        spawn = {"subplans": {"parallel": True, "max_parallel": at_once, "plans": plans}}
        seconds = run_plan(top / f"home-{at_once}", project, [spawn])
        ideal = -(-8 // at_once)
        print(
            f"8 children of 1 s, max_parallel {at_once}: {seconds:.2f} s"
            f" (ideal {ideal} s, overhead {seconds - ideal:.2f} s)"
        )


def print_branching(top: Path, count: int, row: str) -> None:
    project = make_project(top / "project", count)
    home = top / "home"
    run_plan(home, project, [{"tool": "shell", "with": {"command": "echo 1 > one.txt"}}])
    branch = Branch(home, project)
    best: dict[str, tuple[float, int, int]] = {}
    for _ in range(ROUNDS):
        measure(best, "git worktree add", lambda: worktree_add(project, top / "w"), top / "w")
        forget_worktree(project, top / "w")
        measure(best, "branch", branch.make, branch.place)
        measure(best, "first snapshot", branch.adopt, None)
        branch.forget()
    for what, (seconds, du, df) in best.items():
        sizes = (f"{du / 1e6:.1f}", f"{df / 1e6:.1f}") if du else ("", "")
        print(row.format(count, what, f"{seconds:.2f}", *sizes))


def measure(
    best: dict[str, tuple[float, int, int]],
    what: str,
    work: Callable[[], object],
    made: Path | None,
) -> None:
    os.sync()
    free = os.statvfs("/" if made is None else made.parent)
    before = time.perf_counter()
    work()
    seconds = time.perf_counter() - before
    os.sync()
    used = disk_of(made) if made else 0
    now = os.statvfs("/" if made is None else made.parent)
    taken = (free.f_bfree - now.f_bfree) * now.f_frsize if made else 0
    if what not in best or seconds < best[what][0]:
        best[what] = (seconds, used, taken)


class Branch:
    """The sandbox of a child of the one plan in `home`, made by the program's own parts."""

    def __init__(self, home: Path, project: Path) -> None:
        from dataclasses import replace

        from cleveragents.config import load_settings
        from cleveragents.container import Container
        from cleveragents.domain.ids import PlanId, ResourceId
        from cleveragents.domain.sandbox import SandboxStatus

        class Quiet:
            def emit(self, event: object) -> None:
                """Nobody watches."""

        environ = {**os.environ, "HOME": str(home)}
        loaded = load_settings(
            environ, home=str(home), cwd=str(project), flags={}, config_path=None
        )
        container = Container(loaded.settings, environ, str(project), Quiet())
        self._sandboxes: Any = container._sandboxes  # noqa: SLF001
        self._snapshots: Any = container._snapshots  # noqa: SLF001
        self._ids: Any = container._ids  # noqa: SLF001
        plan = container.plan_queries.list()[0].plan_id
        parent = container.checkpoint_service.sandboxes(plan)[0]
        self._parent = replace(parent, boundary=self._snapshots.capture(parent).ref)
        child = PlanId(self._ids.new())
        self._child = replace(
            parent,
            plan_id=child,
            resource_id=ResourceId(self._ids.new()),
            sandbox_path=self._sandboxes.path_for(child, parent.name, parent.type),
            status=SandboxStatus.PENDING,
            base_snapshot=None,
            boundary=None,
            details={**parent.details, "store": plan, "sandbox_branch": f"bench/{child}"},
        )
        self.place = Path(self._child.sandbox_path)
        self.place.parent.mkdir(parents=True, exist_ok=True)

    def make(self) -> None:
        self._copied = self._sandboxes.branch(self._parent, self._child)

    def adopt(self) -> None:
        self._snapshots.adopt(self._parent, self._child, self._copied)

    def forget(self) -> None:
        from dataclasses import replace

        self._snapshots.release(self._child)
        self._sandboxes.remove(self._child)
        self._child = replace(
            self._child, resource_id=type(self._child.resource_id)(self._ids.new())
        )
        self.place.parent.mkdir(parents=True, exist_ok=True)


def make_project(path: Path, count: int) -> Path:
    chance = random.Random(1)
    for number in range(count):
        file = path / f"d{number // 100}" / f"f{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(chance.randbytes(chance.choice((300, 1500, 4000, 9000))))
    for args in (("init", "-q", "-b", "main"), ("add", "-A"), (*IDENTITY, "commit", "-qm", "x")):
        subprocess.run(["git", "-C", str(path), *args], check=True)
    return path


def run_plan(home: Path, project: Path, steps: list[dict[str, Any]]) -> float:
    """Seconds of `plan execute`."""
    home.mkdir(parents=True)
    action = home / "a.yaml"
    resources = {"code": {"type": "git-checkout", "path": "."}}
    told = {"name": "bench", "description": "measure", "resources": resources, "steps": steps}
    action.write_text(json.dumps(told))
    environ = {**os.environ, "HOME": str(home)}
    used = agents(project, environ, "plan", "use", str(action))
    started = time.perf_counter()
    agents(project, environ, "plan", "execute", used["data"]["plan_id"])
    return time.perf_counter() - started


def agents(cwd: Path, environ: dict[str, str], *args: str) -> dict[str, Any]:
    done = subprocess.run(
        [AGENTS, "--format", "json", *args], cwd=cwd, env=environ, capture_output=True, check=False
    )
    if done.returncode:
        sys.exit(done.stdout.decode() + done.stderr.decode())
    return json.loads(done.stdout)


def worktree_add(project: Path, place: Path) -> None:
    place.parent.mkdir(exist_ok=True)
    args = ("worktree", "add", "-q", "--detach", str(place), "HEAD")
    subprocess.run(["git", "-C", str(project), *args], check=True)


def forget_worktree(project: Path, place: Path) -> None:
    shutil.rmtree(place)
    subprocess.run(["git", "-C", str(project), "worktree", "prune"], check=True)


def disk_of(path: Path) -> int:
    done = subprocess.run(["du", "-s", "-B1", str(path)], capture_output=True, check=True)
    return int(done.stdout.split()[0])


def can_share(folder: Path) -> bool:
    source = folder / "shared"
    source.write_bytes(b"x" * 4096)
    copy = ["cp", "--reflink=always", str(source), str(folder / "copy")]
    return subprocess.run(copy, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    main()
