"""What a living process writes through memory shows in nothing, and is found nevertheless."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.watched_tree import StoredTree, Tree, tree

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.snapshots.changes.folder_watches import FolderWatches

__all__ = ["tree"]

# Does what its input says, line by line, and says so.
WRITER = """
import mmap, sys
file = area = None
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "open":
        file = open(rest, "r+b")
    elif word == "map":
        area = mmap.mmap(file.fileno(), 0)
    elif word == "write":
        area[0:1] = rest.encode()
    elif word == "unmap":
        area.close()
    elif word == "close":
        file.close()
    print(flush=True)
"""


class Writer:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def __call__(self, *words: str) -> None:
        assert self._process.stdin and self._process.stdout
        for word in words:
            self._process.stdin.write(word.encode() + b"\n")
            self._process.stdin.flush()
            self._process.stdout.readline()


@contextmanager
def writing(tree: Tree) -> Generator[Writer]:
    """A process that the plan has started, and that lives on."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", WRITER]
    with subprocess.Popen(command, cwd=tree.root, stdin=pipe, stdout=pipe) as process:
        try:
            writer = Writer(process)
            writer("ready")
            yield writer
        finally:
            process.kill()


def let_it_age(tree: Tree) -> None:
    """What is young is looked at anyway."""
    time.sleep(0.1)
    tree.look()


def held(tree: Tree, name: str = "f") -> str:
    return chr((tree.root / name).read_bytes()[0])


def test_who_was_there_when_everything_was_compared_anew_is_looked_at(tree: Tree) -> None:
    tree.look()
    with writing(tree) as writer:
        tree.look()
        tree.sh("ln a/one a/twin")
        assert tree.look().notes != ()
        writer("open f", "map")
        for letter in "xyz":
            writer(f"write {letter}")
            assert b"f" in tree.look().paths
            assert held(tree) == letter


def test_who_was_there_at_the_very_first_look_is_looked_at(tree: Tree) -> None:
    with writing(tree) as writer:
        tree.look()
        writer("open f", "map")
        for letter in "xyz":
            writer(f"write {letter}")
            assert b"f" in tree.look().paths


def test_what_is_written_before_the_mapping_ends_is_found_though_the_file_stays_open(
    tree: Tree,
) -> None:
    tree.look()
    with writing(tree) as writer:
        writer("open f", "map", "write x")
        tree.look()
        writer("write y", "unmap")
        assert b"f" in tree.look().paths
        writer("map", "write z", "unmap")
        assert b"f" in tree.look().paths
        writer("close")
        tree.look()
        assert tree.look().paths == ()


def test_what_is_mapped_under_another_name_is_found(tree: Tree) -> None:
    tree.sh("ln f a/inner; ln f ../outer")
    let_it_age(tree)
    with writing(tree) as writer:
        for name in ("a/inner", "../outer"):
            writer(f"open {name}", "map", "write x")
            let_it_age(tree)
            writer("write y")
            assert {b"f", b"a/inner"} <= set(tree.look().paths)


def test_where_nothing_can_be_watched_mappings_are_still_looked_at(tmp_path: Path) -> None:
    def none(scratch: str) -> FolderWatches:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), scratch)

    tree = Tree(tmp_path, none)
    let_it_age(tree)
    with writing(tree) as writer:
        writer("open f", "map")
        for letter in "xyz":
            writer(f"write {letter}")
            let_it_age(tree)
            writer(f"write {letter.upper()}")
            found = tree.look()
            assert "nothing can be watched" in found.notes[0]
            assert b"f" in found.paths
        writer("write v", "unmap")
        tree.look(settle=False)
        assert b"f" in tree.look().paths


def test_what_was_found_is_named_until_it_is_stored(tree: Tree) -> None:
    tree.look()
    with writing(tree) as writer:
        writer("open f", "map", "write x")
        tree.look()
        writer("write y", "unmap")
        tree.look(settle=False)
        assert b"f" in tree.look().paths


BUSY = """
import mmap
file = open("data", "r+b")
area = mmap.mmap(file.fileno(), 0)
print(flush=True)
count = 0
while True:
    count += 1
    area[:8] = area[-8:] = count.to_bytes(8, "big")
"""


def test_a_file_that_is_written_through_memory_all_the_time_is_refused(tmp_path: Path) -> None:
    stored = StoredTree(tmp_path, small=400)
    data = stored.root / "data"
    data.write_bytes(bytes(8 << 20))
    first = stored.capture()
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, cwd=stored.root, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            with pytest.raises(SnapshotFailedError, match="'data' keeps changing"):
                stored.engine.capture(stored.resource)
        finally:
            process.kill()
    last = stored.capture()
    assert last.ref != first.ref
    stored.close()
