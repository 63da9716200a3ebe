"""What the watcher names is all that changed."""

import mmap
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.watched_tree import Tree, tree

from cleveragents.infrastructure.files.excludes import excludes
from cleveragents.infrastructure.files.read_path import hash_only, read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.snapshots.changes import mmap_writers
from cleveragents.infrastructure.snapshots.changes.mmap_writers import (
    LiveMappings,
    ProcessesWithoutMappings,
)
from cleveragents.infrastructure.snapshots.changes.watcher import Watcher

__all__ = ["tree"]


# --- what is named ------------------------------------------------------------------------------


CHANGES = {
    "nothing": ("cat a/one; ls -R > /dev/null", set()),
    "written": ("echo x > a/b/two", {"a/b/two"}),
    "appended": ("echo x >> f", {"f"}),
    "created": ("echo x > a/new", {"a/new"}),
    "deleted": ("rm a/b/c/three", {"a/b/c/three"}),
    "mode only": ("chmod 600 a/one", {"a/one"}),
    "mode of a folder": ("chmod 700 a/b", {"a/b"}),
    "renamed": ("mv a/one a/b/moved", {"a/one", "a/b/moved"}),
    "replaced by rename": ("echo y > a/tmp; mv a/tmp f", {"f"}),
    "truncated": ("truncate -s 0 f", {"f"}),
    "a link": ("ln -s nowhere l", {"l"}),
    "a link retargeted": ("ln -s 1 k; ln -sfn 2 k; mv -T k a/k", {"a/k"}),
    "a folder": ("mkdir -p n/e/w; echo x > n/e/w/f", {"n", "n/e", "n/e/w", "n/e/w/f"}),
    "a folder removed": ("rm -r a/b", {"a/b", "a/b/two", "a/b/c", "a/b/c/three"}),
    "a folder renamed": (
        "mv a/b d",
        {"a/b", "a/b/two", "a/b/c", "a/b/c/three", "d", "d/two", "d/c", "d/c/three"},
    ),
    "a folder moved out": ("mv a/b ..", {"a/b", "a/b/two", "a/b/c", "a/b/c/three"}),
    "a folder for a file": ("rm f; mkdir f; echo x > f/x", {"f", "f/x"}),
    "a file for a folder": ("rm -r a/b/c; echo x > a/b/c", {"a/b/c", "a/b/c/three"}),
    "same size and old times": ("touch -r f ../t; echo 9 > f; touch -r ../t f", {"f"}),
    "gone again": ("echo x > t; rm t; mkdir u; rmdir u", set()),
    "a nested repository": ("git init -q r && test -d r/.git", None),
}


@pytest.mark.parametrize(("command", "expected"), CHANGES.values(), ids=list(CHANGES))
def test_exactly_what_changed_is_named(tree: Tree, command: str, expected: set[str] | None) -> None:
    named = tree.names(command)
    assert expected is None or named == expected


def test_a_moved_folder_is_still_watched(tree: Tree) -> None:
    tree.names("mv a/b d")
    assert tree.names("echo x > d/c/new; echo y >> d/two") == {"d/c/new", "d/two"}
    tree.names("mv d e; mv e a/b; mkdir d; echo x > d/x")
    assert tree.names("echo z > a/b/c/three; echo z > d/x") == {"a/b/c/three", "d/x"}


def test_a_folder_moved_in_is_named_whole(tree: Tree) -> None:
    (tree.root.parent / "outside/in").mkdir(parents=True)
    (tree.root.parent / "outside/in/f").write_text("x")
    assert tree.names("mv ../outside o") == {"o", "o/in", "o/in/f"}
    assert tree.names("echo y > o/in/f") == {"o/in/f"}


def test_a_folder_that_was_replaced_is_named_whole(tree: Tree) -> None:
    tree.look()
    tree.sh("mkdir ../other; echo x > ../other/x; mv a/b ../gone; mv ../other a/b")
    assert set(tree.look().paths) >= {b"a/b/x", b"a/b/two", b"a/b/c", b"a/b/c/three"}


def test_folders_made_quickly_one_in_the_other_are_all_seen(tree: Tree) -> None:
    tree.look()
    script = (
        "import os\n"
        "for i in range(150):\n"
        "    os.makedirs(f'q{i}/r/s/t'); open(f'q{i}/r/s/t/f', 'w').write(str(i))\n"
        "    if i % 3 == 0: os.rename(f'q{i}/r', f'q{i}/moved')\n"
        "    if i % 7 == 0: os.rename(f'q{i}', f'z{i}')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=tree.root) as maker:
        while maker.poll() is None:
            with RootedFolder(str(tree.root)) as anchor:
                tree.watcher.candidates(anchor, tree.exclude, tree.known())
    tree.look()
    assert tree.names("echo x > q1/r/s/t/f; echo y > z147/moved/s/t/f") == {
        "q1/r/s/t/f",
        "z147/moved/s/t/f",
    }


def test_what_was_named_is_named_again_until_it_is_stored(tree: Tree) -> None:
    tree.look()
    tree.sh("echo x > f")
    assert tree.look(settle=False).paths == (b"f",)
    tree.sh("echo x > a/one")
    assert tree.look().paths == (b"a/one", b"f")
    assert tree.look().paths == ()


def test_what_is_looked_at_again_is_no_news(tree: Tree) -> None:
    tree.look()
    with RootedFolder(str(tree.root)) as anchor:
        tree.watcher.candidates(anchor, tree.exclude, tree.known())
        tree.sh("mkdir d; echo x > d/x; echo y > f; echo z > a/one")
        tree.watcher.look_again(anchor, tree.known(), {b"d", b"d/x", b"f"})
        for path in (b"d", b"d/x", b"f"):
            seen = read_path(anchor, path, hash_only)
            assert seen is not None
            tree.seen[path] = seen
        tree.watcher.acknowledge(anchor.root, tree.seen)
    assert tree.look().paths == (b"a/one",)
    assert tree.names("echo more > d/x") == {"d/x"}


def test_excluded_folders_are_not_heard_of(tree: Tree) -> None:
    tree.exclude = excludes(("target/", "*.tmp"))
    tree.look()
    assert tree.names("mkdir -p target/x n/m; echo 1 > target/x/y; echo 1 > n/m/a.tmp") == set()
    assert tree.names("echo 2 > target/x/y; echo 2 > n/m/a.tmp; touch b.tmp") == set()
    assert tree.names("echo 2 > n/m/real") == {"n", "n/m", "n/m/real"}


def test_a_folder_that_loses_its_excluded_paths_is_one(tree: Tree) -> None:
    tree.exclude = excludes(("*.tmp", "target/"))
    tree.sh("mkdir -p h/i k/target; echo x > h/i/a.tmp; echo x > k/target/x")
    tree.look()
    assert tree.names("rm h/i/a.tmp") == {"h", "h/i"}
    assert tree.names("rm -r k/target") == {"k"}


def test_other_excludes_mean_another_look_at_everything(tree: Tree) -> None:
    tree.names("mkdir target; echo x > target/x")
    tree.exclude = excludes(("*.tmp",))
    tree.names("echo y > target/x")


def test_sockets_and_pipes_come_and_go(tree: Tree) -> None:
    tree.look()
    tree.sh("mkfifo a/pipe p; mkdir -p d/e; mkfifo d/e/q")
    assert tree.look().special == (b"a/pipe", b"d/e/q", b"p")
    tree.sh("rm a/pipe; mv d ../away; rm p; echo x > p")
    assert tree.look().special == ()


# --- what events do not tell --------------------------------------------------------------------


def test_a_second_name_outside_of_the_tree_is_followed(tree: Tree) -> None:
    tree.sh("ln f ../outside")
    tree.look()
    time.sleep(0.1)
    tree.look()
    assert tree.names("true") == set()
    assert tree.names("echo x >> ../outside") == {"f"}
    tree.sh("echo y >> ../outside")
    assert tree.look().paths == (b"f",)


def test_a_second_name_inside_of_the_tree_makes_doubt_once(tree: Tree) -> None:
    tree.look()
    tree.sh("ln f a/g; echo x >> a/g")
    assert tree.look().notes != ()
    assert tree.names("echo y >> f") == {"f", "a/g"}
    assert tree.names("mkdir d; echo x >> a/g; echo y > d/y") >= {"f", "a/g", "d", "d/y"}
    tree.sh("mkdir n; ln f n/h")
    assert tree.look().notes != ()


def test_a_living_mapping_is_looked_at_every_time(tree: Tree) -> None:
    script = (
        "import mmap, sys\n"
        "file = open('f', 'r+b'); file.write(b'0' * 100); file.flush()\n"
        "area = mmap.mmap(file.fileno(), 0)\n"
        "for line in sys.stdin:\n"
        "    area[0:1] = line[:1].encode(); print(flush=True)\n"
    )
    tree.look()
    command = [sys.executable, "-c", script]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tree.root, stdin=pipe, stdout=pipe) as process:
        assert process.stdin and process.stdout
        for letter in b"abcd":
            process.stdin.write(bytes((letter, 10)))
            process.stdin.flush()
            process.stdout.readline()
            assert tree.look().paths == (b"f",)
            assert tree.root.joinpath("f").read_bytes()[0] == letter
        process.stdin.close()
    tree.look()
    assert tree.look().paths == ()


@pytest.mark.parametrize("kernel", ["with the question", "without"])
@pytest.mark.parametrize("name", ["plain", "new\nline", "back\\slash"])
def test_a_mapping_is_found_whatever_the_root_is_called(
    tmp_path: Path, name: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel == "without":
        monkeypatch.setattr(mmap_writers, "_REQUEST", 0)
    root = tmp_path / name
    root.mkdir()
    (root / "f").write_bytes(b"0")
    script = (
        "import mmap, sys\nfile = open('f', 'r+b'); area = mmap.mmap(file.fileno(), 0)\n"
        "print(flush=True); sys.stdin.read()\n"
    )
    mappings, pipe = LiveMappings(os.fsencode(root), ProcessesWithoutMappings()), subprocess.PIPE
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe) as process:
        assert process.stdin and process.stdout
        process.stdout.readline()
        assert mappings.now().mapped == {b"f"}
        process.stdin.close()


def test_what_a_finished_process_mapped_is_told_by_its_end(tree: Tree) -> None:
    tree.look()
    with (tree.root / "f").open("r+b") as file:
        area = mmap.mmap(file.fileno(), 0)
    area[0:1] = b"m"
    area.close()
    assert tree.look().paths == (b"f",)


def test_whoever_looks_once_watches_nothing_and_finds_the_same(tree: Tree) -> None:
    tree.look()
    tree.watcher.close()
    queues = _queues()
    tree.watcher = Watcher(str(tree.scratch), watching=False)
    # What was written a moment ago may be named too.
    assert tree.names("echo x > a/b/two; rm a/b/c/three") >= {"a/b/two", "a/b/c/three"}
    assert _queues() <= queues

    command = [sys.executable, "-c", MAPPING]
    with subprocess.Popen(command, cwd=tree.root, stdin=subprocess.PIPE) as process:
        while not (found := tree.look()).mapped:
            assert process.poll() is None
        assert found.mapped == {b"f"}
        assert process.stdin is not None
        process.stdin.close()


MAPPING = """
import mmap, sys
file = open("f", "r+b")
area = mmap.mmap(file.fileno(), 0)
sys.stdin.read()
"""


def test_what_is_closed_is_watched_no_more_and_can_be_looked_at_again(tree: Tree) -> None:
    before = _queues()
    tree.look()
    assert _queues() == before + 1

    tree.watcher.close()

    assert _queues() == before
    tree.sh("echo x > f")
    assert b"f" in tree.look().paths


def _queues() -> int:
    found = 0
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += "inotify" in str(file.readlink())
    return found


# --- any history --------------------------------------------------------------------------------


def test_any_history_is_followed(world, tmp_path: Path) -> None:
    """The same snapshot as a new process that compares everything would take."""
    world.capture()
    for number, command in enumerate(HISTORY):
        world.work(command)
        watched = world.capture()
        store = world.store
        fresh = world.new_process().capture(world.resource)
        assert fresh.ref == watched.ref, f"{number}: {command}"
        world.store = store


HISTORY = (
    "mkdir -p d/e/f; echo 1 > d/e/f/g; ln -s d/e k",
    "mv d/e e; echo 2 > e/f/g; chmod 0500 e/f",
    "rm -r d; mv e d; git init -q d/r; echo x > d/r/x",
    "git add -A . 2>/dev/null || true; git commit -qm work || true",
    "ln a.txt d/hard; echo more >> d/hard",
    "git checkout -q HEAD~1 2>/dev/null || true; rm -rf d/r; mkfifo pipe",
    "rm pipe k; echo > pipe; cp -r src copy; rm -r src; mv copy src",
)
