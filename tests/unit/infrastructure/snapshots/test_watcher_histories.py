"""Whatever is done to a watched tree, each look at it names all that changed."""

import itertools
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from watched_tree import Tree

from cleveragents.infrastructure.snapshots.excludes import excludes

NAMES = st.sampled_from(
    ["f", "a", "a/one", "a/b", "a/b/c", "a/b/c/x", "n", "n/m", "t.tmp", "a/t.tmp"]
)


class WatchedTree(RuleBasedStateMachine):
    """Every operation may fail for what is there already; the tree is then as it was."""

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.tree = Tree(self.top)
        self.numbers = itertools.count()
        self.tree.look()

    def teardown(self) -> None:
        shutil.rmtree(self.top)

    @rule(name=NAMES, data=st.binary(max_size=3))
    def write(self, name: str, data: bytes) -> None:
        self._try(lambda path: path.write_bytes(data), name)

    @rule(name=NAMES)
    def folder(self, name: str) -> None:
        self._try(lambda path: path.mkdir(parents=True), name)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        path = self.tree.root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True) if path.parent.is_dir() else None

    @rule(name=NAMES, other=NAMES)
    def rename(self, name: str, other: str) -> None:
        self._try(lambda path: path.rename(self.tree.root / other), name)

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
        self._try((self.tree.root / other).hardlink_to, name)

    @rule(name=NAMES, mode=st.sampled_from([0o600, 0o755, 0o1777]))
    def mode(self, name: str, mode: int) -> None:
        self._try(lambda path: path.lstat() and path.is_symlink() or path.chmod(mode), name)

    @rule(pattern=st.sampled_from([(), ("*.tmp",), ("n/",)]))
    def other_excludes(self, pattern: tuple[str, ...]) -> None:
        self.tree.exclude = excludes(pattern)
        self.tree.seen = {}

    @rule()
    def look(self) -> None:
        self.tree.look()

    @rule()
    def look_in_vain(self) -> None:
        self.tree.look(settle=False)

    def _try(self, operation, name: str) -> None:
        try:
            operation(self.tree.root / name)
        except OSError:
            return


TestWatchedTree = WatchedTree.TestCase
TestWatchedTree.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
