# ruff: noqa: ARG002 - ASV passes both parameters to every method
"""Time and bytes of a checkpoint, a rollback and a prune, by files in the tree and files changed;
and what checkpoints add to each step of a plan that runs through the command.

asv run --python=same --quick
"""

import shutil
import statistics
import tempfile
from pathlib import Path

from benchmarks import steps
from benchmarks.compare import World

FILES = [1000, 10000]
STEPS = 40
ROUNDS = 3
CHANGED = [1, 10, 1000]


class _Watched:
    """A tree whose first snapshot is taken, as it is in the middle of a plan."""

    timeout = 600
    number = 1
    warmup_time = 0
    param_names = ("files", "changed")
    params = (FILES, CHANGED)

    def setup(self, files: int, changed: int) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="asv-"))
        self.world = World(self.top, files)
        self.first = self.world.capture()
        self.world.write(changed, "setup")

    def teardown(self, files: int, changed: int) -> None:
        self.world.store.close()
        shutil.rmtree(self.top)


class Record(_Watched):
    def time_checkpoint(self, files: int, changed: int) -> None:
        self.world.capture()

    def track_bytes(self, files: int, changed: int) -> int:
        return self.world.capture().size_bytes

    track_bytes.unit = "bytes"  # pyright: ignore[reportFunctionMemberAccess] - ASV reads it


class Rollback(_Watched):
    def time_rollback(self, files: int, changed: int) -> None:
        self.world.store.restore(self.world.resource, self.first.ref)


class NewProcess(_Watched):
    def time_full_comparison(self, files: int, changed: int) -> None:
        self.world.new_store().capture(self.world.resource)


class Prune(_Watched):
    def setup(self, files: int, changed: int) -> None:
        super().setup(files, changed)
        for number in range(20):
            self.world.write(changed, f"checkpoint {number}")
            self.world.capture()

    def time_prune(self, files: int, changed: int) -> None:
        self.world.store.keep_only(self.world.resource, [self.first.ref])


class Steps:
    """The median over the steps, and the best of some runs in turn: other work on the machine can
    only make a run slower."""

    timeout = 600
    param_names = ("files",)
    params = (FILES,)

    def setup(self, files: int) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="asv-"))
        self.world = steps.World(self.top, files, shell=False)

    def teardown(self, files: int) -> None:
        shutil.rmtree(self.top)

    def track_step(self, files: int) -> float:
        return min(self._run(checkpoints=True) for _ in range(ROUNDS))

    def track_checkpoints_per_step(self, files: int) -> float:
        runs = [(self._run(checkpoints=False), self._run(checkpoints=True)) for _ in range(ROUNDS)]
        bare, whole = zip(*runs, strict=True)
        return min(whole) - min(bare)

    def _run(self, *, checkpoints: bool) -> float:
        return statistics.median(self.world.run(STEPS, checkpoints=checkpoints))

    track_step.unit = "ms"  # pyright: ignore[reportFunctionMemberAccess] - ASV reads it
    track_checkpoints_per_step.unit = "ms"  # pyright: ignore[reportFunctionMemberAccess]
