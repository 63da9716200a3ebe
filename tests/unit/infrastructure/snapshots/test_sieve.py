"""A tree that was left alone is sifted, and nothing that changes falls through."""

import itertools
import os
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from tests.support.watched_tree import StoredTree
from tests.unit.infrastructure.snapshots.test_watcher_histories import TreeHistory

from cleveragents.infrastructure.files.entry import NEVER, RACY_NS
from cleveragents.infrastructure.snapshots.changes import full_scan as comparison
from cleveragents.infrastructure.snapshots.changes import stat_index, stat_index_scan
from cleveragents.infrastructure.snapshots.changes.stat_index import CERTAIN, draft
from cleveragents.infrastructure.snapshots.changes.stat_index_scan import Sifted

# The second in which a file changed has to be over.
OLD = 1.15
TREES = 30
EVERYTHING = """
mkdir -p a/b/c empty n/m deep/er; echo 1 > a/one; echo 2 > a/b/two; echo 3 > f; ln -s f l
ln -s nowhere a/l; : > nothing; echo y > -dash; echo z > 'a/s p'; echo x > a/b/c/x; echo t > t.tmp
mkdir -p inner/.git/objects; echo r > inner/.git/HEAD; printf x > inner/.git/index
printf '' > "$(printf 'odd\\377\\nname')"; chmod 0600 a/one; chmod 0755 f; ln -s . deep/loop
i=0; while [ $i -lt 30 ]; do echo $i > n/m/f$i; i=$((i+1)); done
"""


def _new_tree(top: Path, more: str = "") -> StoredTree:
    tree = StoredTree(top, small=-1)
    subprocess.run(["/bin/sh", "-ec", EVERYTHING + more], cwd=tree.root, check=True)
    return tree


def _look_twice(tree: StoredTree) -> None:
    """At first it is listed; when it is found as it was, a stat index is made."""
    for _ in range(2):
        tree.new_process()
        tree.capture()


def _sifted_tree(top: Path, *, wait: float = OLD, more: str = "") -> StoredTree:
    tree = _new_tree(top, more)
    time.sleep(wait)
    _look_twice(tree)
    return tree


def _has_sieve(top: Path) -> bool:
    with closing(sqlite3.connect(next(top.glob("snapshots/*.db")))) as db:
        return db.execute("SELECT COUNT(*) FROM stat_indexes").fetchone() == (1,)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredTree]:
    """One for each test that needs one: all of them have to wait, and so they wait together."""
    made = [_new_tree(tmp_path_factory.mktemp("stat index")) for _ in range(TREES)]
    time.sleep(OLD)
    return iter(made)


@pytest.fixture
def tree(trees: Iterator[StoredTree]) -> StoredTree:
    found = next(trees)
    _look_twice(found)
    assert _has_sieve(found.root.parent)
    found.new_process()
    return found


@pytest.fixture
def sifted(monkeypatch: pytest.MonkeyPatch) -> list[Sifted]:
    """What each stat index let through."""
    results: list[Sifted] = []
    real = stat_index_scan.sift

    def noted(*arguments: object) -> Sifted:
        results.append(real(*arguments))  # pyright: ignore[reportArgumentType]
        return results[-1]

    monkeypatch.setattr(stat_index_scan, "sift", noted)
    return results


def test_nothing_changed_and_nothing_is_looked_at(tree: StoredTree, sifted: list[Sifted]) -> None:
    before = tree.capture().ref
    assert sifted == [(set(), set(), set(), {})]
    tree.new_process()
    assert tree.capture().ref == before
    assert len(sifted) == 2


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("echo 2 >> f", {"f"}),
        ("touch -r f stamp; printf 9 | dd of=a/b/two conv=notrunc; touch -r stamp a/b/two", None),
        ("chmod 0640 a/b/two", {"a/b/two"}),
        ("chmod 0700 empty", {"empty"}),
        ("rm n/m/f7", {"n/m/f7"}),
        ("rm -r n", {f"n/m/f{number}" for number in range(30)}),
        ("ln -sfn a l", {"l"}),
        ("echo new > top; mkdir -p x/y; echo z > x/y/z", {"top", "x/y/z"}),
        ("mv a/b moved", {"a/b/two", "a/b/c/x", "moved/two", "moved/c/x"}),
        ("rm -r a/b; echo file > a/b", {"a/b/two", "a/b/c/x", "a/b"}),
        ("rm f; mkdir f; echo 1 > f/inner", {"f", "f/inner"}),
        ("mv deep keep; ln -s keep deep", {"deep", "deep/er", "deep/loop", "keep/er", "keep/loop"}),
        ("echo s > inner/.git/index", {"inner/.git/index"}),
        ("printf y > nothing", {"nothing"}),
        ("rm -r empty", {"empty"}),
    ],
)
def test_what_changed_is_found(
    tree: StoredTree, sifted: list[Sifted], command: str, changed: set[str] | None
) -> None:
    subprocess.run(["/bin/sh", "-ec", command], cwd=tree.root, check=True, capture_output=True)
    found = {change.path for change in tree.capture().changes}
    assert found == (changed or {"stamp", "a/b/two"})
    assert len(sifted) == 1


def test_git_reads_no_file_of_the_tree(tmp_path: Path, sifted: list[Sifted]) -> None:
    """It would for one that seems younger than the index, and attributes for it: it has to complain
    about these here, and is not believed then."""
    later = "echo x > later; touch -d 2100-01-01 later"
    more = f"ln -s nowhere .gitattributes; {later}; cd a; {later}"
    tree = _sifted_tree(tmp_path, more=more)
    tree.new_process()
    (tree.root / "f").write_text("changed")
    assert {change.path for change in tree.capture().changes} == {"f"}
    assert len(sifted) == 1


def test_what_was_stored_since_is_known_and_looked_at_again(
    tree: StoredTree, sifted: list[Sifted]
) -> None:
    subprocess.run(["/bin/sh", "-ec", "mkdir x; echo 1 > x/y; rm f"], cwd=tree.root, check=True)
    tree.capture()
    time.sleep(0.06)
    tree.new_process()
    assert tree.capture().changes == ()
    # Its folder is as the snapshot has it; only the stat index has never heard of either.
    with (tree.root / "x/y").open("r+") as file:
        file.write("2")
    tree.new_process()
    assert [change.path for change in tree.capture().changes] == ["x/y"]
    (tree.root / "x").rename(tree.root.parent / "away")
    tree.new_process()
    assert [change.path for change in tree.capture().changes] == ["x/y"]
    assert len(sifted) == 4


def test_one_that_tells_of_too_little_is_made_anew(
    tree: StoredTree, sifted: list[Sifted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stat_index, "_FEW_TOUCHED", 5)
    monkeypatch.setattr(comparison, "_STALE", 4)
    for number in range(10):
        (tree.root / f"n/m/f{number}").write_text("changed")
    newest = tree.capture().ref
    assert len(sifted) == 1
    time.sleep(OLD)
    _look_twice(tree)
    assert len(sifted) == 1
    tree.new_process()
    assert tree.capture().ref == newest
    assert sifted[1:] == [(set(), set(), set(), {})]


def test_specials_and_second_names_are_heard_of(tree: StoredTree, sifted: list[Sifted]) -> None:
    os.mkfifo(tree.root / "a/b/pipe")
    (tree.root / "second").hardlink_to(tree.root / "f")
    assert tree.capture().skipped == ("a/b/pipe",)
    assert sifted[0].linked == {b"f", b"second"}


def test_a_change_within_the_same_second_is_found(tmp_path: Path, sifted: list[Sifted]) -> None:
    """Git compares whole seconds; what is so young is never left to it."""
    tree = StoredTree(tmp_path, small=-1)
    for number in range(60):
        (tree.root / f"f{number}").write_text("1")
    time.sleep(OLD)
    while time.time() % 1 > 0.3:
        time.sleep(0.01)
    young = tree.root / "young"
    young.write_text("1")
    # So that git's own doubt about files written a moment ago does not help.
    os.utime(young, (0, 0))
    time.sleep(0.1)
    for _ in range(2):
        tree.new_process()
        tree.capture()
    assert _has_sieve(tmp_path)
    with young.open("r+") as file:
        file.write("2")
    os.utime(young, (0, 0))
    tree.new_process()
    assert [change.path for change in tree.capture().changes] == ["young"]
    assert len(sifted) == 1


def test_a_young_tree_has_no_sieve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As if no second were ever over, however slow this is.
    monkeypatch.setattr("cleveragents.infrastructure.snapshots.tree.listing_store.CERTAIN", "0")
    _sifted_tree(tmp_path, wait=0.06)
    assert not _has_sieve(tmp_path)


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("ctime_ns", "certain"),
    [
        (7 * SECOND, True),
        (8 * SECOND, False),  # over by now, but not by a clock that is behind
        (9 * SECOND + 1, False),
        (NEVER, False),
    ],
)
def test_only_a_second_that_is_over_is_left_to_git(ctime_ns: int, *, certain: bool) -> None:
    values = {"ctime_ns": ctime_ns, "since_ns": 9 * SECOND + RACY_NS}
    with closing(sqlite3.connect(":memory:")) as db:
        ask = f"SELECT {CERTAIN} FROM (SELECT :ctime_ns AS ctime_ns)"
        assert db.execute(ask, values).fetchone() == (certain,)


def test_a_folder_that_changed_a_moment_before_it_was_listed_is_not_trusted(
    tmp_path: Path,
) -> None:
    root = os.open(tmp_path, os.O_RDONLY)
    changed = os.fstat(root).st_ctime_ns
    try:
        (early,) = draft(root, [b""], changed + RACY_NS).folders
        (late,) = draft(root, [b""], changed + RACY_NS + 1).folders
    finally:
        os.close(root)
    assert early.ctime_ns != changed == late.ctime_ns


@pytest.mark.parametrize("more", ["mkfifo pipe", "ln f hard"])
def test_a_tree_with_what_a_sieve_cannot_tell_has_none(tmp_path: Path, more: str) -> None:
    _sifted_tree(tmp_path, more=more)
    assert not _has_sieve(tmp_path)


@pytest.mark.parametrize("script", ["exit 1", "echo oops >&2", "kill $$"])
def test_a_git_that_fails_is_not_believed(
    tree: StoredTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (tree.root / "f").write_text("other")
    assert [change.path for change in tree.capture().changes] == ["f"]


def test_without_git_the_tree_is_listed(
    tree: StoredTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tree.root / "f").write_text("other")
    assert [change.path for change in tree.capture().changes] == ["f"]


def test_settings_of_others_do_not_reach_git(
    tree: StoredTree, monkeypatch: pytest.MonkeyPatch, sifted: list[Sifted]
) -> None:
    """With these, git would not look at the time, or run a program."""
    settings = {"core.checkStat": "minimal", "core.trustctime": "false", "core.fsmonitor": "false"}
    for number, (key, value) in enumerate(settings.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(settings)))
    monkeypatch.setenv("GIT_DIR", str(tree.root / "inner/.git"))
    times = (tree.root / "f").stat()
    (tree.root / "f").write_text("4\n")
    os.utime(tree.root / "f", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [change.path for change in tree.capture().changes] == ["f"]
    assert len(sifted) == 1


def test_a_damaged_sieve_is_not_used(tree: StoredTree) -> None:
    database = next(tree.root.parent.glob("snapshots/*.db"))
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE stat_indexes SET second=substr(first, 1, 40)")
    (tree.root / "f").write_text("other")
    assert [change.path for change in tree.capture().changes] == ["f"]


def test_more_changes_than_are_worth_it_are_listed_and_the_sieve_goes(
    tree: StoredTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cleveragents.infrastructure.snapshots.changes.stat_index_scan._MOST_PATHS", 3
    )
    monkeypatch.setattr(comparison, "_STALE", 3)
    for number in range(5):
        (tree.root / f"n/m/f{number}").write_text("other")
    assert len(tree.capture().changes) == 5
    assert not _has_sieve(tree.root.parent)


class SiftedHistory(TreeHistory):
    """The same operations on a tree that has a stat index from the start."""

    @initialize(small=st.just(-1), exclude=st.just(()))
    def begin(self, small: int, exclude: tuple[str, ...]) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.tree = _sifted_tree(self.top)
        assert _has_sieve(self.top)
        self.root = self.tree.root
        self.numbers = itertools.count()
        self.refs = [self.tree.capture().ref]
        self.tree.new_process()


TestSiftedHistory = SiftedHistory.TestCase
TestSiftedHistory.settings = settings(max_examples=4, stateful_step_count=50, deadline=None)
