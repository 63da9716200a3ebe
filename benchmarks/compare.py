"""Compares checkpoints and restores with what git would take for the same, side by side in one run.

    python benchmarks/compare.py                        1 k and 10 k files
    python benchmarks/compare.py --files 100000         one large tree
    python benchmarks/compare.py --processor --least    where others disturb the clock

Git is given its best case: its index is warm, and nothing that it writes is made durable, while
ours is on disk when the call returns. Figures are medians unless `--least` is given, and ratios are
git's time by ours.
"""

import argparse
import os
import platform
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import zstandard
from workers import PLAN, adapters_in, checkout_of

from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

FILES_PER_FOLDER = 15
SHELL_STEP = 'while read -r name; do printf "%s %s\\n" "$1" "$name" >> "$name"; done'


class World:
    """A project, its sandbox, our store, and two more git directories over the same sandbox."""

    def __init__(self, top: Path, files: int) -> None:
        self.top, self.files = top, files
        self.project, self.sandbox = top / "project", top / "sandbox"
        self.project.mkdir(parents=True)
        self.names = list(_make_tree(self.project, files))
        self.git("init", "-q", "-b", "main", cwd=self.project)
        self.git("add", "-A", cwd=self.project)
        self.git("commit", "-qm", "base", cwd=self.project)
        self.resource = checkout_of(
            self.project, self.sandbox, self.git("rev-parse", "HEAD", cwd=self.project).strip()
        )
        for name in ("shadow", "plain"):
            self.git("init", "-q", env=self.directory(name))
            self.git("add", "-A", env=self.directory(name))
            self.git("commit", "-qm", "base", env=self.directory(name))
        self.store = self.new_store()

    def new_store(self) -> CheckpointManager:
        """As in a new process: nothing is known and nothing is watched."""
        return CheckpointManager(adapters_in(self.top))

    def directory(self, name: str) -> dict[str, str]:
        return {"GIT_DIR": str(self.top / name), "GIT_WORK_TREE": str(self.sandbox)}

    def git(self, *arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None):
        identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "gc.auto=0"]
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=cwd or (self.sandbox if self.sandbox.is_dir() else self.top),
            env={**os.environ, **(env or {})},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode()

    # --- the steps that are compared --------------------------------------------------------------

    def capture(self):
        return self.store.capture(self.resource)

    def shadow_commit(self) -> None:
        self.git("add", "-A", env=self.directory("shadow"))
        self.git("commit", "-qm", "step", "--allow-empty", env=self.directory("shadow"))

    def write_tree(self) -> None:
        self.git("add", "-A", env=self.directory("plain"))
        self.git("write-tree", env=self.directory("plain"))

    def shadow_restore(self) -> None:
        self.git("reset", "-q", "--hard", env=self.directory("shadow"))
        self.git("clean", "-qfd", env=self.directory("shadow"))

    def status(self) -> None:
        self.git("--no-optional-locks", "status", "--porcelain")

    # --- changes ----------------------------------------------------------------------------------

    def write(self, changed: int, stamp: str) -> None:
        """As a write tool does: from this process."""
        for name in self._some(changed):
            with (self.sandbox / name).open("a") as file:
                file.write(f"{stamp} {name}\n")

    def shell(self, changed: int, stamp: str) -> None:
        """As a shell step does: by another process, whose work nobody declares."""
        names = "\n".join(self._some(changed)) + "\n"
        subprocess.run(
            ["/bin/sh", "-c", SHELL_STEP, "sh", stamp],
            input=names.encode(),
            cwd=self.sandbox,
            check=True,
        )

    def _some(self, changed: int) -> list[str]:
        step = max(1, len(self.names) // changed)
        return self.names[::step][:changed]


def _make_tree(top: Path, files: int):
    random.seed(files)
    words = [f"{random.randrange(1 << 32):x}" for _ in range(2000)]
    for number in range(files):
        folder = number // FILES_PER_FOLDER
        name = f"d{folder % 40}/e{folder // 40}/f{number}.txt"
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" ".join(random.choices(words, k=random.randrange(20, 500))) + "\n")
        yield name


# --- measuring ------------------------------------------------------------------------------------


class Meter:
    """What a time is, and which of several counts; chosen once, for the whole run."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = time.perf_counter
        self.summary: Callable[[list[float]], float] = statistics.median


METER = Meter()


def _processor_seconds() -> float:
    """Of this process and of the commands that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _ms(task: Callable[[], object]) -> float:
    start = METER.clock()
    task()
    return (METER.clock() - start) * 1000


def _row(name: str, ours: list[float], others: dict[str, list[float]]) -> None:
    mine = METER.summary(ours)
    cells = [f"{name:<44}", f"ours {mine:9.2f} ms"]
    for other, times in others.items():
        theirs = METER.summary(times)
        cells.append(f"{other} {theirs:9.1f} ms ({theirs / mine:6.1f}x)")
    print("  ".join(cells), flush=True)


def compare_checkpoints(world: World, changed: int, rounds: int) -> None:
    kinds = {"declared write": world.write, "shell step": world.shell}
    for kind, change in kinds.items():
        ours: list[float] = []
        tree: list[float] = []
        shadow: list[float] = []
        for number in range(rounds):
            change(changed, f"{kind} {changed} {number}")
            ours.append(_ms(world.capture))
            tree.append(_ms(world.write_tree))
            shadow.append(_ms(world.shadow_commit))
        others = {"add+write-tree": tree, "shadow commit": shadow}
        _row(f"checkpoint, {changed} changed, {kind}", ours, others)


def compare_restores(world: World, changed: int, rounds: int) -> None:
    ours: list[float] = []
    shadow: list[float] = []
    world.shadow_commit()
    target = world.capture()
    for number in range(rounds):
        world.write(changed, f"away {number}")
        world.capture()
        ours.append(_ms(lambda: world.store.restore(world.resource, target.ref)))
        world.write(changed, f"away {number}")
        shadow.append(_ms(world.shadow_restore))
        world.capture()
    _row(f"durable restore, {changed} changed", ours, {"shadow reset+clean": shadow})


def compare_new_process(world: World, rounds: int) -> None:
    world.capture()
    time.sleep(0.2)
    ours: list[float] = []
    status: list[float] = []
    for _ in range(rounds):
        status.append(_ms(world.status))
        world.store.close()
        world.store = world.new_store()
        ours.append(_ms(world.capture))
    _row("new process, nothing changed", ours, {"git status": status})


def compare_sizes(worlds: list[World], rounds: int = 40) -> None:
    """In turn, because machines are noisy and only what was measured at once can be compared."""
    times: list[list[float]] = [[] for _ in worlds]
    for world in worlds:
        world.capture()
    for number in range(rounds):
        for world, taken in zip(worlds, times, strict=True):
            world.shell(1, f"size {number}")
            taken.append(_ms(world.capture))
    print("\n## sizes in turn: checkpoint, 1 changed, shell step")
    first = METER.summary(times[0])
    for world, taken in zip(worlds, times, strict=True):
        mine = METER.summary(taken)
        print(f"{world.files:>7} files  {mine:8.2f} ms  ({mine / first:.2f} of the first)")


def measure_storage(world: World, checkpoints: int) -> None:
    path = world.sandbox / "changing.txt"
    random.seed(1)
    packed = 0
    world.capture()
    world.store.close()
    database = world.top / "snapshots" / f"{PLAN}.db"
    before = database.stat().st_size
    memory: list[int] = []
    for _ in range(checkpoints):
        data = " ".join(f"{random.randrange(1 << 40):x}" for _ in range(950)).encode()[:10240]
        packed += len(zstandard.ZstdCompressor(level=1).compress(data))
        path.write_bytes(data)
        world.capture()
        memory.append(_resident())
    world.store.close()
    grown = database.stat().st_size - before
    allowed = 1.2 * packed + 1024 * checkpoints
    print(
        f"{checkpoints} checkpoints of a 10 KB file: {grown / checkpoints:.0f} bytes each in the"
        f" store, {packed / checkpoints:.0f} compressed; {grown / allowed:.2f} of what is allowed"
    )
    early = memory[min(100, len(memory) - 1)]
    print(f"resident memory: {early} KiB after 100 of them, {memory[-1]} KiB after the last")


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


# --- the run --------------------------------------------------------------------------------------


def describe_machine(folder: Path, program: str = "compare") -> None:
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=True
    ).stdout
    load = os.getloadavg()[0]
    print(f"# {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, Linux {platform.release()},")
    print(f"# {kind.strip()}, Python {platform.python_version()}, {git.strip()},", end=" ")
    print(f"SQLite {sqlite3.sqlite_version}, load {load:.1f}")
    print(f"# repeat with: python benchmarks/{program}.py {' '.join(sys.argv[1:])}")


def run(arguments: argparse.Namespace, world: World) -> None:
    print(f"\n## {world.files} files\nfirst snapshot: {_ms(world.capture):.0f} ms", flush=True)
    time.sleep(0.2)
    world.capture()
    for changed in arguments.changed:
        compare_checkpoints(world, changed, arguments.rounds)
    for changed in arguments.changed:
        compare_restores(world, changed, arguments.rounds)
    compare_new_process(world, arguments.rounds)
    if arguments.checkpoints:
        measure_storage(world, arguments.checkpoints)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--changed", type=int, nargs="+", default=[1, 10, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--checkpoints", type=int, default=1000, help="for storage and memory")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where to make the trees")
    parser.add_argument("--processor", action="store_true", help="processor time, not the clock's")
    parser.add_argument("--least", action="store_true", help="the least of the rounds")
    arguments = parser.parse_args()
    if arguments.processor:
        METER.clock = _processor_seconds
    if arguments.least:
        METER.summary = min
    describe_machine(Path(arguments.folder))
    worlds: list[World] = []
    with tempfile.TemporaryDirectory(prefix="compare-", dir=arguments.folder) as folder:
        for files in arguments.files:
            worlds.append(World(Path(folder, str(files)), files))
            run(arguments, worlds[-1])
        if len(worlds) > 1:
            compare_sizes(worlds)


if __name__ == "__main__":
    main()
