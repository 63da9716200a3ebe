"""Random work on plans over a checkout, a folder and a database, with kills, for as long as asked.

    python -m tests.support.soak --minutes 30 --seed 1

Each plan has a seed of its own, which is printed when something is wrong: `--plans 1 --seed N` does
the same again, as far as the moments of kills by the clock can be the same.
"""

import argparse
import gc
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support.history_model import Histories

OPERATIONS = 60
# Kept after everything was pruned: a checkout, a folder and a database of a few kilobytes.
MOST_BYTES = 40 << 20
MORE_MEMORY = 200 << 20
MORE_DESCRIPTORS = 10


class Soaked(Histories):
    """A history with corrections, and with commands that are killed by the clock.

    After a correction the order of the steps says no more what a group must hold: it is known from
    the first time that one has gone back to it.
    """

    with_code = True

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.done_so_far: Counter[str] = Counter()
        self.corrected = False

    def live(self, operations: int) -> None:
        self.begin()
        for _ in range(operations):
            work = self.chance.choices(*zip(*self.choices(), strict=True))[0]
            self.done_so_far[work.__name__.strip("_")] += 1
            work()
            self.files_are_as_expected()
        self._end()

    def choices(self) -> list[tuple[Callable[[], None], int]]:
        known = self.present is not None
        always = [
            (self._execute, 4),
            (self._die_in_execute, 3),
            (self._die_in_rollback, 3),
            (self._killed_by_the_clock, 6),
            (self._two_at_once, 1),
            (self.prune, 1),
            (self._delete, 1),
        ]
        return [*always, *([(self._rollback, 6), (self.undo, 2)] if known else [])] + (
            [(self.create, 2), (self._correct, 3)] if known else []
        )

    # --- the rules, with what chance wants ------------------------------------------------------

    def _shut(self) -> bool:
        return not self.corrected and self.chance.random() < 0.4

    def _pick(self) -> int:
        return self.chance.randrange(10_000)

    def _label(self) -> str:
        self.labels += 1
        return f"soak {self.labels}"

    def _execute(self) -> None:
        self.execute(shut=self._shut())

    def _rollback(self) -> None:
        self.rollback(self._pick())

    def _delete(self) -> None:
        self.delete(self._pick())

    def _die_in_execute(self) -> None:
        self.die_in_execute(shut=self._shut(), at=self.chance.randint(1, 150))

    def _die_in_rollback(self) -> None:
        self.die_in_rollback(self._pick(), self.chance.randint(1, 80))

    def note_new_groups(self, before: object) -> None:
        if not self.corrected:
            super().note_new_groups(before)  # type: ignore[arg-type]
            return
        self.noted |= {group.group_id for group in self.plan.groups}

    # --- and more -------------------------------------------------------------------------------

    def _correct(self) -> None:
        """The same is decided again, so the end is the same."""
        self.execute(shut=False)
        self.corrected = True
        nodes = self.plan("tree").ok().data["tree"]["children"]
        words = (
            "--mode",
            "revert",
            "--guidance",
            "again",
            "--yes",
            self.chance.choice(nodes)["id"],
        )
        attempt = self.plan.status["attempt"]
        answer = self.plan.agents("plan", "correct", *words)
        # Its checkpoint may be gone; then nothing has changed.
        refused = answer.code == 1 and answer.error["code"] == "correction-refused"
        assert not answer.code or (refused and "pruned" in answer.error["message"]), answer
        status = self.plan.status
        assert status["attempt"] == (attempt if refused else attempt + 1), status
        assert status["state"] == "complete", status
        self.present, self.done = self.known.states[-1], self.known.steps - 1
        self.note_new_groups(None)

    def _killed_by_the_clock(self) -> None:
        """The installed command and all that it has started, at any moment."""
        self.known.shut(shut=False)
        words = self.chance.choice(
            [
                ("execute", self.plan.id),
                ("rollback", "--yes", self.plan.id, self.some_group(self._pick()).group_id),
                ("checkpoint", "prune", "--yes", self.plan.id),
                ("checkpoint", "create", "--label", self._label(), self.plan.id),
            ]
        )
        process = self.plan.agents.start("plan", *words)
        time.sleep(self.chance.uniform(0.1, 1.2))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self.present = None
        self.noted |= {group.group_id for group in self.plan.groups}

    def _two_at_once(self) -> None:
        """One waits, or is told that the other is at work."""
        self.known.shut(shut=False)
        agents = self.plan.agents
        running = [
            agents.fork("plan", "execute", self.plan.id),
            agents.fork("plan", "checkpoint", "create", "--label", self._label(), self.plan.id),
        ]
        for answer in [process.answer() for process in running]:
            assert not answer.code or answer.error["code"] == "plan-locked", answer
        self.present = None
        self.noted |= {group.group_id for group in self.plan.groups}

    def _end(self) -> None:
        """All can be gone back to, is in order, does not pile up, and reaches the project."""
        self.execute(shut=False)
        # Each of these makes one more group, and none of the others may go for that.
        many = self.plan.agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="1000")
        for group in self.plan.groups:
            many("plan", "rollback", "--yes", self.plan.id, group.group_id).ok()
            facts = self.held.get(group.group_id)
            assert facts is None or self.known.facts() == facts, group
        self.execute(shut=False)
        self.files_are_as_expected()
        agents = self.plan.agents
        few = agents.having(CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN="5")
        few("plan", "checkpoint", "prune", "--yes", self.plan.id).ok()
        agents("store", "verify").ok()
        agents("doctor").ok()
        size = sum(p.lstat().st_size for p in agents.data_dir.rglob("*") if p.is_file())
        assert size < MOST_BYTES, f"{size} bytes are kept"
        self.plan("apply", "--yes").ok()
        text = (self.top / "w/project/README.md").read_text()
        assert text == self.known.states[-1].code[0]
        agents("doctor").ok()


def main(argv: list[str]) -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--minutes", type=float, default=30)
    asked.add_argument("--plans", type=int, default=sys.maxsize)
    asked.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = asked.parse_args(argv)
    begun, total, plans = time.monotonic(), Counter[str](), 0
    sizes: list[tuple[int, int]] = []
    os.chdir("/")
    while plans < options.plans and time.monotonic() - begun < options.minutes * 60:
        seed = options.seed + plans
        plan = Soaked(random.Random(seed))
        sys.stdout.write(f"seed {seed}: ")
        try:
            plan.live(OPERATIONS)
        except BaseException:
            sys.stdout.write(f"FAILED after {dict(plan.done_so_far)}, see {plan.top}\n")
            raise
        shutil.rmtree(plan.top)
        plans, total = plans + 1, total + plan.done_so_far
        sizes.append(_in_use())
        sys.stdout.write(f"{sum(plan.done_so_far.values())} operations\n")
        sys.stdout.flush()
    grown = _grown(sizes)
    minutes = (time.monotonic() - begun) / 60
    told = ", ".join(f"{number} {name}" for name, number in sorted(total.items()))
    sys.stdout.write(
        f"soak: {minutes:.1f} min, seed {options.seed}, {plans} plans, {told}; "
        f"memory {grown[0] >> 20:+} MB, descriptors {grown[1]:+}: no difference from the model\n"
    )
    assert grown[0] < MORE_MEMORY and grown[1] < MORE_DESCRIPTORS, "something is not given back"
    return 0


def _in_use() -> tuple[int, int]:
    """Bytes of memory at most, and open descriptors."""
    # What a command held that died in this process is only waiting to be found by Python.
    gc.collect()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return peak, len(list(Path("/proc/self/fd").iterdir()))


def _grown(sizes: list[tuple[int, int]]) -> tuple[int, int]:
    """Since the first plan, with which everything was loaded."""
    (memory, files), (last_memory, last_files) = sizes[0], sizes[-1]
    return last_memory - memory, last_files - files


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
