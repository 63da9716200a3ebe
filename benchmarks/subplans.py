"""Prints what child plans cost: how parallel they really run, and what branching a sandbox takes.

usage: python -m benchmarks.subplans [--files 1000,10000,100000] [--folder DIR] [--image xfs,btrfs]

Branching is compared with `git worktree add` of the same size, in turns, the best of three each
(two above 10 000 files): other work on the machine can only make a turn slower. Nothing is removed
before the end: file systems such as ext4 avoid the places of files that were just removed, which
would make each turn slower than the one before. `branch` is the sandbox of a child as it can be
worked in; `first snapshot` is what comes on top, for which git has no counterpart.

`du` counts the blocks of the new folder, shared ones as if they were not; `df` is what the file
system lost while it was made, and is only exact where nobody else writes. `--image` makes a file
system of its own for that, which takes root and a loop device.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

AGENTS = Path(sys.executable).with_name("agents")
ROUNDS = 3
MANY = 10_000
GIT, BRANCH, SNAPSHOT = "git worktree add", "branch", "first snapshot"
ROW = "{:>8}  {:>18}  {:>8}  {:>10}  {:>10}"
IDENTITY = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", default="1000,10000,100000")
    parser.add_argument("--folder", default=None, help="where to work; default: the temp folder")
    parser.add_argument("--image", default="", help="also on new file systems of these kinds")
    options = parser.parse_args()
    counts = [int(text) for text in options.files.split(",")]
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="subplans-") as name:
        top = Path(name)
        print_parallel(top / "parallel")
        print_table(top, kind_of(top), counts)
        for kind in filter(None, options.image.split(",")):
            with image(top, kind) as place:
                print_table(place, kind, counts)


def print_table(top: Path, kind: str, counts: list[int]) -> None:
    shares = can_share(top)
    print(f"\n{kind}: {'shares blocks' if shares else 'cannot share blocks, so all is copied'}")
    print(ROW.format("files", "what", "seconds", "du MB", "df MB"))
    for count in counts:
        print_branching(top / f"branch-{count}", count, shares=shares)


@contextmanager
def image(top: Path, kind: str) -> Iterator[Path]:
    """A file system of our own. Its file has holes, so that it takes what is in it."""
    path, place = top / f"{kind}.img", top / kind
    path.touch()
    os.truncate(path, 16 << 30)
    place.mkdir()
    subprocess.run([f"mkfs.{kind}", "-q", str(path)], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["mount", "-o", "loop", "-t", kind, str(path), str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        path.unlink()


def kind_of(folder: Path) -> str:
    asked = ["stat", "-f", "-c", "%T", str(folder)]
    return subprocess.run(asked, capture_output=True, check=True).stdout.decode().strip()


def print_parallel(top: Path) -> None:
    project = make_project(top / "project", 20)
    child = {"tool": "shell", "with": {"command": "sleep 1"}}
    plans = [{"name": f"c{i}", "steps": [child]} for i in range(8)]
    run_plan(top / "home-first", project, [{"subplans": {"plans": plans[:1]}}])
    for at_once in (1, 4, 8):
        spawn = {"subplans": {"parallel": True, "max_parallel": at_once, "plans": plans}}
        seconds = run_plan(top / f"home-{at_once}", project, [spawn])
        ideal = -(-8 // at_once)
        print(
            f"8 children of 1 s, max_parallel {at_once}: {seconds:.2f} s"
            f" (ideal {ideal} s, overhead {seconds - ideal:.2f} s)"
        )


def print_branching(top: Path, count: int, *, shares: bool) -> None:
    project = make_project(top / "project", count)
    # As a repository is that was not made just now; git is twice as fast then.
    subprocess.run(["git", "-C", str(project), "repack", "-adq"], check=True)
    home = top / "home"
    run_plan(home, project, [{"tool": "shell", "with": {"command": "echo 1 > one.txt"}}])
    branch = Branch(home, project)
    best: dict[str, Cost] = {}
    for turn in range(ROUNDS if count <= MANY else ROUNDS - 1):
        place = top / f"w{turn}"
        measure(best, GIT, partial(worktree_add, project, place), place)
        branch.begin()
        measure(best, BRANCH, branch.make, branch.place)
        measure(best, SNAPSHOT, branch.inherit_snapshot, None)
    for what, cost in best.items():
        sizes = (f"{cost.du / 1e6:.1f}", f"{cost.df / 1e6:.1f}") if cost.du else ("", "")
        print(ROW.format(count, what, f"{cost.seconds:.3f}", *sizes), flush=True)
    one, two = best[GIT], best[BRANCH]
    less = f", {one.df / max(1, two.df):.1f}x less disk" if shares else ""
    print(f"{'':>10}branch: {one.seconds / two.seconds:.2f}x as fast as git{less}", flush=True)


class Cost(NamedTuple):
    seconds: float
    du: int
    df: int


def measure(
    best: dict[str, Cost], what: str, work: Callable[[], object], made: Path | None
) -> None:
    where = made.parent if made else Path("/")
    os.sync()
    free = os.statvfs(where)
    before = time.perf_counter()
    work()
    seconds = time.perf_counter() - before
    os.sync()
    now = os.statvfs(where)
    if what not in best or seconds < best[what].seconds:
        taken = (free.f_bfree - now.f_bfree) * now.f_frsize if made else 0
        best[what] = Cost(seconds, disk_of(made) if made else 0, taken)


class Branch:
    """The sandbox of a child of the one plan in `home`, made by the program's own parts."""

    def __init__(self, home: Path, project: Path) -> None:
        from msgspec.structs import replace

        from cleveragents.config import load_settings
        from cleveragents.container import Container

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
        plan = container.plan_queries.list().plans[0].plan_id
        parent = container.plan_queries.status(plan).resources[0]
        self._adapter: Any = container._adapters.of(parent)  # noqa: SLF001
        self._parent = replace(parent, boundary=self._snapshots.capture(parent).ref)
        self._plan = plan

    def begin(self) -> None:
        """One more child."""
        from msgspec.structs import replace

        from cleveragents.domain.ids import PlanId, ResourceId
        from cleveragents.domain.resource import SandboxStatus

        parent = self._parent
        child = PlanId(self._ids.new())
        self._child = replace(
            parent,
            plan_id=child,
            resource_id=ResourceId(self._ids.new()),
            sandbox_path=self._sandboxes.path_for(child, parent.name, parent.type),
            status=SandboxStatus.PENDING,
            base_snapshot=None,
            boundary=None,
            kept_with=self._plan,
        )
        self.place = Path(self._child.sandbox_path)
        self.place.parent.mkdir(parents=True, exist_ok=True)

    def make(self) -> None:
        self._copied = self._adapter.branches.copy(self._parent, self._child)

    def inherit_snapshot(self) -> None:
        self._adapter.snapshots.inherit_snapshot(self._parent, self._child, self._copied)


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
    environ = environment(home)
    used = agents(project, environ, "plan", "use", str(action))
    started = time.perf_counter()
    agents(project, environ, "plan", "execute", used["data"]["plan_id"])
    return time.perf_counter() - started


def environment(home: Path) -> dict[str, str]:
    """As an installed program runs: its modules are compiled once, not at every start."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    compiled = Path(tempfile.gettempdir()) / f"compiled-{os.getpid()}"
    return {**kept, "HOME": str(home), "PYTHONPYCACHEPREFIX": str(compiled)}


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
