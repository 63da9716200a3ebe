"""Whatever is done to a tree, each snapshot of it is what a look at every path would give."""

import itertools
import mmap
import os
import shutil
import tempfile
import time
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.support.watched_tree import StoredTree

NAMES = st.sampled_from(
    ["f", "a", "a/one", "a/b", "a/b/c", "a/b/c/x", "n", "n/m", "t.tmp", "a/t.tmp", "s p\n\udcff"]
)
ALWAYS_WALK, NEVER_WALK = 1 << 30, -1


class TreeHistory(RuleBasedStateMachine):
    """Every operation may fail for what is there already; the tree is then as it was."""

    @initialize(
        small=st.sampled_from([ALWAYS_WALK, NEVER_WALK]),
        exclude=st.sampled_from([(), ("*.tmp",), ("n/m",), ("t.tmp", "a/b/c/")]),
    )
    def begin(self, small: int, exclude: tuple[str, ...]) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.tree = StoredTree(self.top, exclude=exclude, small=small)
        self.root = self.tree.root
        self.numbers = itertools.count()
        self.refs = [self.tree.capture().ref]

    def teardown(self) -> None:
        if hasattr(self, "top"):
            self.tree.close()
            shutil.rmtree(self.top)

    # --- what happens to files ------------------------------------------------------------------

    @rule(name=NAMES, data=st.binary(max_size=3))
    def write(self, name: str, data: bytes) -> None:
        self._try(lambda path: path.is_fifo() or path.write_bytes(data), name)

    @rule(name=NAMES, letter=st.binary(min_size=1, max_size=1))
    def write_in_place_with_old_times(self, name: str, letter: bytes) -> None:
        self._try(lambda path: _overwrite(path, letter), name)

    @rule(name=NAMES, letter=st.binary(min_size=1, max_size=1))
    def write_through_a_mapping(self, name: str, letter: bytes) -> None:
        self._try(lambda path: _write_mapped(path, letter), name)

    @rule(name=NAMES)
    def folder(self, name: str) -> None:
        self._try(lambda path: path.mkdir(parents=True), name)

    @rule(name=NAMES)
    def pipe(self, name: str) -> None:
        self._try(os.mkfifo, name)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self._try(_remove, name)

    @rule(name=NAMES, other=NAMES)
    def rename(self, name: str, other: str) -> None:
        self._try(lambda path: path.rename(self.root / other), name)

    @rule(name=NAMES)
    def move_out(self, name: str) -> None:
        self._try(lambda path: path.rename(self.top / f"out{next(self.numbers)}"), name)

    @rule(name=NAMES)
    def move_in(self, name: str) -> None:
        outside = sorted(self.top.glob("out*"))
        if outside:
            self._try(outside[0].rename, name)

    @rule(name=NAMES, other=NAMES)
    def link(self, name: str, other: str) -> None:
        self._try(lambda path: path.symlink_to(other), name)

    @rule(name=NAMES, other=NAMES)
    def hard_link(self, name: str, other: str) -> None:
        self._try((self.root / other).hardlink_to, name)

    @rule(name=NAMES, mode=st.sampled_from([0o600, 0o755, 0o1777]))
    def mode(self, name: str, mode: int) -> None:
        self._try(lambda path: path.lstat() and path.is_symlink() or path.chmod(mode), name)

    # --- what we do -----------------------------------------------------------------------------

    @rule()
    def new_process(self) -> None:
        self.tree.new_process()

    @rule()
    def wait_until_times_count(self) -> None:
        time.sleep(0.06)

    @rule()
    def capture(self) -> None:
        self.refs.append(self.tree.capture().ref)

    @rule()
    def look_in_vain(self) -> None:
        self.tree.capture_in_vain()

    @rule(pick=st.integers(0, 9))
    def restore(self, pick: int) -> None:
        self.tree.restore(self.refs[pick % len(self.refs)])

    def _try(self, operation, name: str) -> None:
        try:
            operation(self.root / name)
        except OSError:
            return


def _overwrite(path: Path, letter: bytes) -> None:
    times = path.stat()
    if not path.is_file():
        return
    with path.open("r+b") as file:
        file.write(letter[: times.st_size])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _write_mapped(path: Path, letter: bytes) -> None:
    if not path.is_file() or path.is_symlink() or not path.stat().st_size:
        return
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as area:
        area[0:1] = letter


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


TestTreeHistory = TreeHistory.TestCase
TestTreeHistory.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
