"""Where the watcher cannot know, the whole tree is compared."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.watched_tree import Tree, tree

from cleveragents.infrastructure.snapshots.changes import inotify
from cleveragents.infrastructure.snapshots.changes.folder_watches import FolderWatches
from cleveragents.infrastructure.snapshots.changes.inotify import Event, Inotify

__all__ = ["tree"]


def test_an_overflow_is_found_and_everything_compared(tree: Tree) -> None:
    tree.look()
    script = "import os\nfor i in range(9000):\n    open(f'f{i}', 'w').close()\n"
    subprocess.run([sys.executable, "-c", script], cwd=tree.root, check=True)
    found = tree.look()
    assert len(found.paths) >= 9000
    assert "queue" in found.notes[0]
    assert tree.names("echo x > f8999") == {"f8999"}


class Deaf(Inotify):
    """A queue that loses what it is told to lose."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = False
        self.limit = 1000

    def watch(self, fd: int, mask: int) -> int:
        self.limit -= 1
        if self.limit < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().watch(fd, mask)

    def read(self) -> list[Event]:
        return [] if self.lost else super().read()


def _deaf(tmp_path: Path, limit: int = 1000) -> tuple[Tree, list[Deaf]]:
    queues: list[Deaf] = []

    def opener(scratch: str) -> FolderWatches:
        queues.append(Deaf())
        queues[-1].limit = limit
        return FolderWatches(queues[-1], scratch)

    return Tree(tmp_path, opener), queues


def test_a_queue_that_does_not_answer_is_doubted(tmp_path: Path) -> None:
    tree, queues = _deaf(tmp_path)
    tree.look()
    queues[0].lost = True
    tree.sh("echo x > f")
    found = tree.look()
    assert b"f" in found.paths
    assert (len(found.notes), len(queues)) == (1, 2)
    assert tree.names("echo y > f") == {"f"}


def test_without_enough_watches_everything_is_compared_each_time(tmp_path: Path) -> None:
    tree, queues = _deaf(tmp_path, limit=3)
    for number in range(3):
        found = tree.look()
        assert "each checkpoint" in found.notes[0]
        tree.sh(f"echo {number} > a/b/c/three; mkdir d{number}")
    assert len(queues) == 1


def test_a_limit_reached_later_is_told(tmp_path: Path) -> None:
    tree, _ = _deaf(tmp_path, limit=6)
    assert tree.look().notes == ()
    tree.sh("mkdir -p n/e/w; echo x > n/e/w/f")
    assert "each checkpoint" in tree.look().notes[0]


def test_where_nothing_can_be_watched_everything_is_compared(tmp_path: Path) -> None:
    def refuse(_: str) -> FolderWatches:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    tree = Tree(tmp_path, refuse)
    for number in range(3):
        assert "each checkpoint" in tree.look().notes[0]
        tree.sh(f"echo {number} > f")


def test_a_replaced_root_is_compared_whole(tree: Tree) -> None:
    tree.look()
    tree.sh("cp -r . ../copy; echo x > ../copy/new; mv ../tree ../old; mv ../copy ../tree")
    tree.look()
    assert tree.names("echo y > new") == {"new"}


def test_a_root_moved_away_and_back_is_compared_whole(tree: Tree) -> None:
    tree.look()
    tree.sh("mv ../tree ../old; echo x > ../old/f; mv ../old ../tree")
    assert tree.look().notes != ()


def test_another_known_state_is_compared_whole(tree: Tree) -> None:
    tree.look()
    tree.seen = {path: seen for path, seen in tree.seen.items() if path != b"f"}
    tree.look()
    assert b"f" in tree.seen


def test_a_released_tree_is_not_watched_any_more(tree: Tree) -> None:
    tree.look()
    tree.watcher.release(os.fsencode(tree.root))
    tree.watcher.release(os.fsencode(tree.root))
    tree.names("echo x > f")


def test_a_fork_leaves_its_parents_events_alone(tree: Tree) -> None:
    tree.look()
    tree.sh("echo x > f")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if b"f" in tree.look().paths else 2
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert tree.look().paths == (b"f",)


def test_nothing_is_left_in_scratch(tree: Tree) -> None:
    tree.look()
    assert list(tree.scratch.iterdir()) == []


def test_closed_and_forgotten_queues_give_their_descriptors_back(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(5):
        Tree(tmp_path / str(number)).look()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_system_without_inotify_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify.ctypes, "CDLL", lambda *_, **__: object())
    inotify._libc.cache_clear()
    try:
        with pytest.raises(OSError, match="no inotify"):
            Inotify()
    finally:
        monkeypatch.undo()
        inotify._libc.cache_clear()
