"""Walks the history of a repository as an agent would, and goes back to random places in it.

    python benchmarks/replay.py ~/src/django              30 steps of 40 commits each
    python benchmarks/replay.py                           a history that is made for it

Each step is one `git checkout` in a sandbox, and then a checkpoint. Beside it, in the same minutes,
a second repository takes `git add -A && git commit` of the same tree. Then rollbacks, each with its
safety checkpoint and durable, stand beside `git checkout` between the same two commits in a clone,
which is not. Every tree that a rollback leaves is compared, by a hash over all of it, with the tree
of that step. The repository itself is only read. Ends with 1 if a rollback was not exact.
"""

import argparse
import hashlib
import os
import random
import stat
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compare import describe_machine
from workers import adapters_in, checkout_of

from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

SETTINGS = ("user.name=n", "user.email=e@x", "gc.auto=0", "core.hooksPath=")
GIT = ("git", *(word for setting in SETTINGS for word in ("-c", setting)))
MADE_FILES, MADE_COMMITS, MADE_CHANGES = 6000, 60, 400


def git(where: Path, *words: str, env: dict[str, str] | None = None, data: bytes = b"") -> str:
    done = subprocess.run(
        [*GIT, *words],
        cwd=where,
        env={**os.environ, **(env or {})},
        input=data,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"git {' '.join(words)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A group that can be gone back to, and what was there when it was made."""

    commit: str
    ref: str
    tree: str


class Replay:
    """The sandbox with our store, a clone for git's checkouts, and a shadow repository over it."""

    def __init__(self, repository: Path, top: Path, first: str) -> None:
        self.project, self.clone, self.shadow = top / "project", top / "clone", top / "shadow"
        self.sandbox, self._snapshots = top / "sandbox", top / "snapshots"
        for place in (self.project, self.clone):
            git(top, "clone", "-q", "--shared", "--no-checkout", str(repository), str(place))
            git(place, "checkout", "-q", "--detach", first)
        self.resource = checkout_of(self.project, self.sandbox, first)
        self.store = CheckpointManager(adapters_in(top))
        self._env = {"GIT_DIR": str(self.shadow), "GIT_WORK_TREE": str(self.clone)}
        git(top, "init", "-q", env={"GIT_DIR": str(self.shadow)})
        self.checkpoint()
        self.commit()
        self.room = self.stored()

    def checkpoint(self) -> str:
        return self.store.capture(self.resource).ref

    def commit(self) -> None:
        git(self.clone, "add", "-A", env=self._env)
        git(self.clone, "commit", "-qm", "step", "--allow-empty", env=self._env)

    def roll_back(self, step: Step) -> None:
        self.store.capture(self.resource)
        self.store.restore(self.resource, step.ref)

    def stored(self) -> tuple[int, int]:
        return _bytes(self._snapshots), _bytes(self.shadow)

    def changed(self, one: str, other: str) -> int:
        return len(git(self.clone, "diff", "--name-only", "-z", one, other).split("\0")) - 1


def _bytes(folder: Path) -> int:
    found = (path.lstat() for path in folder.rglob("*"))
    return sum(status.st_blocks * 512 for status in found if stat.S_ISREG(status.st_mode))


def tree_hash(root: Path) -> str:
    """Over every path but the top `.git`: what it is, its mode and its bytes."""
    digest = hashlib.sha256()
    for line in sorted(_described(os.fsencode(root), b"")):
        digest.update(hashlib.sha256(line).digest())
    return digest.hexdigest()


def _described(root: bytes, below: bytes) -> Iterator[bytes]:
    with os.scandir(root + b"/" + below) as found:
        entries = list(found)
    for entry in entries:
        path = below + b"/" + entry.name if below else entry.name
        if path == b".git":
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            yield b"%s\0%o" % (path, mode)
            yield from _described(root, path)
        elif stat.S_ISLNK(mode):
            yield b"%s\0link\0%s" % (path, os.readlink(entry.path))  # noqa: PTH115 - bytes
        else:
            with open(entry.path, "rb") as file:  # noqa: PTH123 - bytes
                yield b"%s\0%o\0%s" % (path, mode, hashlib.sha256(file.read()).digest())


def _ms(task: Callable[[], object]) -> float:
    # Ours waits for the disk; it is not to wait for what others have left to be written.
    os.sync()
    start = time.perf_counter()
    task()
    return (time.perf_counter() - start) * 1000


# --- a history for those who name none ------------------------------------------------------------


def made_history(top: Path) -> Path:
    """Files that are changed, added, removed and made executable, as fast as git takes them in."""
    place = top / "made"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    git(place, "fast-import", "--quiet", data=b"".join(_made_commits()))
    return place


def _made_commits() -> Iterator[bytes]:
    dice = random.Random(1)
    words = [f"{dice.randrange(1 << 32):x}" for _ in range(2000)]
    names = [f"d{n // 15 % 40}/e{n // 600}/f{n}.txt" for n in range(MADE_FILES)]
    for number in range(MADE_COMMITS):
        yield b"commit refs/heads/main\ncommitter n <e@x> %d +0000\n" % (1_700_000_000 + number)
        yield b"data 4\nstep\n"
        for name in names if not number else dice.sample(names, MADE_CHANGES):
            if number and dice.random() < 0.05:
                yield b"D %s\n" % name.encode()
                continue
            text = " ".join(dice.choices(words, k=dice.randrange(20, 500))).encode()
            mode = b"100755" if dice.random() < 0.05 else b"100644"
            yield b"M %s inline %s\ndata %d\n%s\n" % (mode, name.encode(), len(text), text)
        yield b"\n"


# --- the run --------------------------------------------------------------------------------------


def walk(replay: Replay, commits: list[str]) -> list[Step]:
    """There: one checkpoint for each of them, and git's beside it."""
    steps: list[Step] = []
    ours: list[float] = []
    gits: list[float] = []
    for commit in commits:
        for place in (replay.sandbox, replay.clone):
            git(place, "checkout", "-q", "--detach", commit)
        refs: list[str] = []
        ours.append(_ms(lambda: refs.append(replay.checkpoint())))  # noqa: B023 - used at once
        gits.append(_ms(replay.commit))
        steps.append(Step(commit=commit, ref=refs[0], tree=tree_hash(replay.sandbox)))
    _told("checkpoint", ours, gits, "git add -A && git commit")
    grown = [now - before for now, before in zip(replay.stored(), replay.room, strict=True)]
    print(f"room of {len(steps)} steps: ours {grown[0] / 1e6:.1f} MB, git {grown[1] / 1e6:.1f} MB")
    return steps


def go_back(replay: Replay, steps: list[Step], times: int, dice: random.Random) -> bool:
    """Back and forth between random steps; True if every tree was what it had been."""
    ours: list[float] = []
    gits: list[float] = []
    wrong = 0
    at = steps[-1]
    for _ in range(times):
        target = dice.choice([step for step in steps if step is not at])
        changed = replay.changed(at.commit, target.commit)
        ours.append(_ms(lambda: replay.roll_back(target)))  # noqa: B023 - used at once
        checkout = ("checkout", "-q", "--detach", target.commit)
        gits.append(_ms(lambda: git(replay.clone, *checkout)))  # noqa: B023 - used at once
        head = git(replay.sandbox, "rev-parse", "HEAD").strip()
        exact = tree_hash(replay.sandbox) == target.tree and head == target.commit
        wrong += not exact
        print(
            f"  {changed:>6} files  ours {ours[-1]:8.1f} ms  git checkout {gits[-1]:8.1f} ms"
            f"  {ours[-1] / gits[-1]:5.2f} of it  {'exact' if exact else 'NOT EXACT'}",
            flush=True,
        )
        at = target
    _told("rollback", ours, gits, "git checkout")
    print(f"{times - wrong} of {times} rollbacks exact")
    return not wrong


def _told(what: str, ours: list[float], gits: list[float], theirs: str) -> None:
    mine, other = statistics.median(ours), statistics.median(gits)
    print(
        f"{what}: ours {mine:.1f} ms, {theirs} {other:.1f} ms: {mine / other:.2f} of it", flush=True
    )


def chosen_commits(repository: Path, every: int, steps: int) -> list[str]:
    """The last ones of the main line, so many apart; the first is where the plan begins."""
    line = git(repository, "rev-list", "--first-parent", "HEAD").split()
    chosen = line[::every][: steps + 1][::-1]
    if len(chosen) < 3:
        sys.exit(f"{repository} has {len(line)} commits: take fewer with --every")
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", nargs="?", help="any local one; one is made if none is named")
    parser.add_argument("--every", type=int, help="commits per step (40; 2 of a made history)")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--back", type=int, default=12, help="how many rollbacks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where to work")
    arguments = parser.parse_args()
    describe_machine(Path(arguments.folder), "replay")
    with tempfile.TemporaryDirectory(prefix="replay-", dir=arguments.folder) as folder:
        top = Path(folder)
        named = arguments.repository
        repository = Path(named).resolve() if named else made_history(top)
        every = arguments.every or (40 if named else 2)
        commits = chosen_commits(repository, every, arguments.steps)
        replay = Replay(repository, top, commits[0])
        files = len(git(replay.clone, "ls-files", "-z").split("\0")) - 1
        print(f"\n## {files} files, {len(commits) - 1} steps of {every} commits", flush=True)
        steps = walk(replay, commits[1:])
        exact = go_back(replay, steps, arguments.back, random.Random(arguments.seed))
        replay.store.close()
    sys.exit(0 if exact else 1)


if __name__ == "__main__":
    main()
