"""A large tree is compared as text; whatever stands in the way of that, the result is the same."""

import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.watched_tree import StoredTree

from cleveragents.infrastructure.files.entry import RACY_NS
from cleveragents.infrastructure.files.excludes import Excludes, excludes
from cleveragents.infrastructure.files.read_path import hash_only, read_path
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.snapshots.changes import full_scan as comparison
from cleveragents.infrastructure.snapshots.changes import listing as listing
from cleveragents.infrastructure.snapshots.changes.full_scan import (
    FullComparison,
    NoWatch,
    full_scan,
)
from cleveragents.infrastructure.snapshots.changes.listing import listing_of, path_of, records
from cleveragents.infrastructure.snapshots.changes.tracker import ManifestView

NOT_RACY = RACY_NS / 1e9 + 0.02
EVERYTHING = """
mkdir -p a/b/c empty n/m deep/er; echo 1 > a/one; echo 2 > a/b/two; echo 3 > f; ln -s f l
ln -s nowhere a/l; ln f hard; mkfifo p a/p; echo x > t.tmp; echo x > n/m/t.tmp; echo y > -dash
echo z > 'a/s p'; chmod 4711 a/one; chmod 1777 empty; mkdir -p only; echo x > only/x.tmp
"""
PATTERNS = st.sampled_from(
    ["*.tmp", "n/", "n/m", "a/b", "./deep/", "**/c", "?", "a/*", "f", "*", "l/", "a/b/two", "-*"]
)


def _known(root: Path, exclude: Excludes) -> ManifestView:
    with RootedFolder(str(root)) as anchor:
        found = FullComparison(1 << 30).candidates(anchor, exclude, ManifestView({}, lambda _: ()))
        looked = [read_path(anchor, path, hash_only) for path in found.paths]
    return ManifestView({seen.path: seen for seen in looked if seen}, lambda _: ())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree") / "t"
    root.mkdir()
    subprocess.run(["/bin/sh", "-ec", EVERYTHING], cwd=root, check=True)
    (root / os.fsdecode(b"\xff\n")).write_text("x")
    # Bytes that say in the text what a path is.
    (root / "a" / "\1\2").mkdir()
    (root / "a" / "\1\2" / "\3\4").write_text("x")
    time.sleep(NOT_RACY)
    return root


@settings(max_examples=40, deadline=None)
@given(patterns=st.lists(PATTERNS, max_size=3), other=st.lists(PATTERNS, max_size=1))
def test_both_ways_name_the_same(tree: Path, patterns: list[str], other: list[str]) -> None:
    """Also if what is known was seen under other excludes."""
    exclude, known = excludes(patterns, frozenset((b"deep",))), _known(tree, excludes(other))
    with RootedFolder(str(tree)) as anchor:
        walked = full_scan(anchor, exclude, known, NoWatch(), 1 << 30)
        listed = full_scan(anchor, exclude, known, NoWatch(), -1)
    assert listed.listing is not None
    assert listed._replace(listing=None) == walked


@pytest.mark.parametrize("pattern", ["[ab]", "a\\b"])
def test_patterns_that_mean_something_else_to_find_are_left_to_the_walk(
    tree: Path, pattern: str
) -> None:
    exclude = excludes((pattern,))
    with RootedFolder(str(tree)) as anchor:
        look = full_scan(anchor, exclude, _known(tree, exclude), NoWatch(), -1)
    assert look.listing is None
    # A file with two names is no record that says it is unchanged.
    assert look.paths == set()


@pytest.mark.parametrize(
    "script", ["exit 1", "echo oops >&2", "kill $$", "head -c 200000 /dev/zero >&2"]
)
def test_a_find_that_fails_is_not_believed(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    program = tmp_path / "find"
    program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with RootedFolder(str(tree)) as anchor:
        look = full_scan(anchor, excludes(()), _known(tree, excludes(())), NoWatch(), -1)
    assert (look.listing, look.paths) == (None, set())


def test_without_find_the_tree_is_walked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with RootedFolder(str(tree)) as anchor:
        look = full_scan(anchor, excludes(()), _known(tree, excludes(())), NoWatch(), -1)
    assert (look.listing, look.paths) == (None, set())


# --- what is kept -------------------------------------------------------------------------------


def _kept(tree: StoredTree) -> tuple[int, int]:
    with closing(sqlite3.connect(next(tree.root.parent.glob("snapshots/*.db")))) as db:
        ask = "SELECT (SELECT COUNT(*) FROM listing_parts), (SELECT COUNT(*) FROM touched)"
        return db.execute(ask).fetchone()


def _filled(tree: StoredTree, folders: int, files: int) -> None:
    for folder in range(folders):
        place = tree.root / f"d{folder % 7}" / f"e{folder}"
        place.mkdir(parents=True)
        for number in range(files):
            (place / f"f{number}").write_text(f"{folder} {number}")
    time.sleep(NOT_RACY)


def test_a_kept_outline_finds_what_changed_in_between_and_since(tmp_path: Path) -> None:
    tree = StoredTree(tmp_path, small=-1)
    _filled(tree, 10, 3)
    tree.capture()
    assert _kept(tree)[0] > 0
    (tree.root / "d1/e1/f0").write_text("in between")
    (tree.root / "d2/e2").rename(tmp_path / "away")
    tree.capture()
    tree.new_process()
    assert tree.capture().changes == ()
    tree.new_process()
    # Nothing of it shows that it was ever away, and that is not what is known.
    (tmp_path / "away").rename(tree.root / "d2/e2")
    (tree.root / "new/er").mkdir(parents=True)
    (tree.root / "new/er/f").write_text("x")
    found = {change.path for change in tree.capture().changes}
    assert found == {"d2/e2/f0", "d2/e2/f1", "d2/e2/f2", "new/er/f"}
    (tree.root / "new/er/f").write_text("watched")
    assert [change.path for change in tree.capture().changes] == ["new/er/f"]


def test_an_outline_that_tells_too_little_is_replaced_or_forgotten(tmp_path: Path) -> None:
    tree = StoredTree(tmp_path, small=-1)
    _filled(tree, 30, 10)
    tree.capture()
    for round_ in range(9):
        for path in tree.root.glob("d*/e*/f*"):
            path.write_text(str(round_))
        time.sleep(NOT_RACY)
        tree.capture()
    assert _kept(tree) == (0, 0)
    tree.new_process()
    tree.capture()
    assert _kept(tree)[0] > 0
    for path in tree.root.glob("d*/e*/f[0-7]"):
        path.write_text("again")
    time.sleep(NOT_RACY)
    tree.new_process()
    tree.capture()
    assert _kept(tree)[1] == 0


def test_an_outline_keeps_its_parts_unless_the_tops_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_SIFTED", -(1 << 30))  # it is listed, always
    tree = StoredTree(tmp_path, small=-1)
    _filled(tree, 30, 10)
    tree.capture()
    for place in ("d0", "top"):
        (tree.root / place).mkdir(exist_ok=True)
        for number in range(60):
            (tree.root / place / f"n{number}").write_text(place)
        time.sleep(NOT_RACY)
        tree.new_process()
        assert len(tree.capture().changes) == 60
        assert _kept(tree)[1] == 0
        tree.new_process()
        assert tree.capture().changes == ()


@pytest.mark.parametrize(("soon", "touched"), [(1 << 30, 0), (0, 1)], ids=["short", "long"])
def test_one_new_path_at_the_tops_is_shared_out_if_the_text_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soon: int, touched: int
) -> None:
    monkeypatch.setattr(comparison, "_SOON", soon)
    tree = StoredTree(tmp_path, small=-1)
    _filled(tree, 10, 3)
    tree.capture()
    (tree.root / "new").write_text("x")
    time.sleep(NOT_RACY)
    tree.new_process()
    assert [change.path for change in tree.capture().changes] == ["new"]
    assert _kept(tree)[1] == touched
    tree.new_process()
    assert tree.capture().changes == ()


def test_a_damaged_outline_is_not_used(tmp_path: Path) -> None:
    tree = StoredTree(tmp_path, small=-1)
    _filled(tree, 3, 3)
    tree.capture()
    tree.new_process()
    with closing(sqlite3.connect(next(tmp_path.glob("snapshots/*.db")))) as db, db:
        db.execute("UPDATE listing_parts SET text=x'00'")
    (tree.root / "d1/e1/f0").write_text("y")
    assert [change.path for change in tree.capture().changes] == ["d1/e1/f0"]


def test_a_link_on_the_way_to_a_known_folder_does_not_hide_another(tmp_path: Path) -> None:
    tree = StoredTree(tmp_path, small=-1)
    _filled(tree, 8, 2)
    (tree.root / "a/b").mkdir(parents=True)
    (tree.root / "z").mkdir()
    tree.capture()
    tree.new_process()
    (tree.root / "a").rename(tmp_path / "a")
    (tree.root / "a").symlink_to("d1")
    (tree.root / "z").rmdir()
    (tree.root / "z").symlink_to("d1")
    (tree.root / "d1/b").mkdir()
    tree.capture()
    (tree.root / "d1/b/x").write_text("x")
    assert [change.path for change in tree.capture().changes] == ["d1/b/x"]


def test_two_names_of_one_folder_mean_a_walk(tmp_path: Path) -> None:
    tree = StoredTree(tmp_path, small=-1)
    _filled(tree, 3, 1)
    for name in ("a", "c"):
        (tree.root / name / "b").mkdir(parents=True)
    tree.capture()
    tree.new_process()
    (tree.root / "c").rename(tmp_path / "c")
    (tree.root / "c").symlink_to("a")
    tree.capture()
    (tree.root / "a/b/x").write_text("x")
    assert [change.path for change in tree.capture().changes] == ["a/b/x"]


# --- the text -----------------------------------------------------------------------------------


def test_a_mark_in_the_middle_of_a_path_marks_nothing() -> None:
    linked, folder = listing.LINKED, listing.FOLDER
    told = [b"f1 ./a\2b", linked + b"2 ./c\1\2", folder + b"755 ./\1\2/d", b"f3 ./\1"]
    text = b"".join(record + b"\0" for record in (*told, linked + b"4 ./e"))
    assert list(listing.marked(text, listing.LINKED)) == [b"c\1\2", b"e"]
    assert list(listing.marked(text, listing.FOLDER)) == [b"\1\2/d"]
    assert list(listing.marked(text, listing.SPECIAL)) == []
    assert list(listing.marked(b"", listing.FOLDER)) == []


def test_parts_are_of_about_equal_size_however_deep_the_tree_begins() -> None:
    names = [f"src/main/p{n % 9}/q{n}" for n in range(40_000)]
    folders = {"/".join(n.split("/")[:d]) for n in names for d in (1, 2, 3)}
    every = [listing.FOLDER + b"755 ./" + f.encode() for f in sorted(folders)] + [
        b"f ./" + n.encode() for n in names
    ]
    taken = listing_of(every)
    assert taken.spine == (b"", b"src", b"src/main")
    sizes = [len(part.text) for part in taken.parts if part.tops]
    assert len(sizes) == 4
    assert max(sizes) < 2 * min(sizes)
    told = [record for part in taken.parts for record in records(part.text)]
    assert sorted(map(path_of, told)) == sorted(map(path_of, every))


def test_a_top_with_very_many_names_is_listed_by_one(tmp_path: Path) -> None:
    tree = StoredTree(tmp_path, small=-1)
    for number in range(listing.MOST_TOPS + 1):
        (tree.root / f"f{number}").touch()
    time.sleep(NOT_RACY)
    tree.capture()
    tree.new_process()
    assert tree.capture().changes == ()
    (tree.root / "f7").write_text("x")
    tree.new_process()
    assert [change.path for change in tree.capture().changes] == ["f7"]


def test_very_many_new_names_at_the_top_mean_a_walk(tmp_path: Path) -> None:
    tree = StoredTree(tmp_path, small=-1)
    _filled(tree, 3, 3)
    tree.capture()
    for number in range(listing.MOST_TOPS + 1):
        (tree.root / f"f{number}").touch()
    tree.new_process()
    assert len(tree.capture().changes) == listing.MOST_TOPS + 1
