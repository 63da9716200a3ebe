"""In place, what git has packed is kept by a link and not read; all of it comes back."""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from tests.support.in_place import Place
from tests.support.trees import Tree, tree_of
from tests.support.world import World

from cleveragents.infrastructure.sandbox.in_place.marker import MARKER
from cleveragents.infrastructure.snapshots.store.blob_keys import is_blob_key

MANY = 450  # more than are walked by us
GONE = "rm -rf d1 d2; echo x > d3/e3/f3.txt; "


@pytest.fixture
def place(world: World) -> Place:
    return large(Place(world))


def large(place: Place) -> Place:
    """Committed, packed, and older than anything that is done from here on."""
    project = place.project
    for number in range(MANY):
        project.write(f"d{number % 9}/e{number % 4}/f{number}.txt", f"{number}\n" * 30)
    project.write("tool.sh", "#!/bin/sh\n")
    (place.path / "tool.sh").chmod(0o750)
    project.git("add", "-A")
    project.git("commit", "-qm", "many")
    project.git("gc", "-q")
    return settled(place)


def settled(place: Place) -> Place:
    """As an hour later: the index is younger than the files by far."""
    later = (place.path / ".git/index").stat().st_mtime_ns + 3_600_000_000_000
    os.utime(place.path / ".git/index", ns=(later, later))
    return place


def packs(place: Place) -> list[Path]:
    return sorted(place.world.agents.data_dir.glob("snapshots/*.packs/*/objects/pack/*.pack"))


def unread(place: Place) -> set[str]:
    """The files whose content nobody has read."""
    (path,) = place.world.agents.data_dir.glob("snapshots/*.db")
    with sqlite3.connect(path) as db:
        rows = [
            row
            for table in ("versions", "recent_paths")
            for row in db.execute(f"SELECT path, hash FROM {table} WHERE seq=1")
        ]
    return {os.fsdecode(name) for name, key in rows if is_blob_key(key)}


@pytest.mark.parametrize(
    "script",
    ["rm -rf .git", "rm -rf .git; git init -q", "git gc -q --prune=now", "git repack -adfq"],
)
def test_files_come_back_byte_for_byte_whatever_becomes_of_the_packs(
    place: Place, script: str
) -> None:
    place.project.write("untracked.txt", "mine")
    before = tree_of(place.path)

    place.run(GONE + script).ok()

    assert len(unread(place)) >= MANY
    assert packs(place)
    place("undo").ok()
    assert _files(place.path) == before


def test_a_link_is_no_copy_and_goes_with_the_timeline(place: Place) -> None:
    place.run(GONE).ok()
    theirs = {path.stat().st_ino for path in (place.path / ".git/objects/pack").glob("*.pack")}

    assert {path.stat().st_ino for path in packs(place)} == theirs
    place("discard", "--yes").ok()
    assert packs(place) == []


@pytest.mark.parametrize("setting", ["core.trustctime=false", "core.checkStat=minimal"])
def test_where_git_compares_less_than_it_could_everything_is_stored(
    place: Place, setting: str
) -> None:
    place.project.git("config", *setting.split("="))
    before = tree_of(place.path)

    place.run(GONE + "rm -rf .git").ok()

    assert unread(place) == set()
    place("undo").ok()
    assert _files(place.path) == before


def test_on_another_file_system_everything_is_stored(place: Place, tmp_path: Path) -> None:
    elsewhere = _other_than(tmp_path)
    try:
        before = tree_of(place.path)
        words = ("--data-dir", str(elsewhere), "run", "--in-place", "--", "sh", "-c")
        place(*words, GONE + "rm -rf .git").ok()

        assert not list(elsewhere.glob("snapshots/*.packs/*/objects/pack/*.pack"))
        place("--data-dir", str(elsewhere), "undo").ok()
        assert _files(place.path) == before
    finally:
        shutil.rmtree(elsewhere)


def _other_than(folder: Path) -> Path:
    for top in map(Path, ("/dev/shm", "/var/tmp")):
        if top.is_dir() and top.stat().st_dev != folder.stat().st_dev:
            return Path(tempfile.mkdtemp(dir=top, prefix="elsewhere-"))
    pytest.skip("there is no second file system")


def test_objects_that_are_not_packed_are_stored(place: Place) -> None:
    place.project.write("d1/loose.txt", "loose\n")
    place.project.git("add", "-A")
    place.project.git("commit", "-qm", "loose")
    settled(place)
    before = tree_of(place.path)

    place.run(GONE + "rm -rf .git").ok()

    assert "d1/loose.txt" not in unread(place)
    assert "d1/e1/f1.txt" in unread(place)
    place("undo").ok()
    assert _files(place.path) == before


def test_several_packs_with_one_index_over_them_are_all_linked(place: Place) -> None:
    place.project.write("d1/second.txt", "second\n")
    place.project.git("add", "-A")
    place.project.git("commit", "-qm", "second")
    place.project.git("repack", "-dq")
    place.project.git("multi-pack-index", "write")
    settled(place)
    before = tree_of(place.path)

    place.run(GONE + "rm -rf .git").ok()

    assert len(packs(place)) == 2
    assert "d1/second.txt" in unread(place)
    place("undo").ok()
    assert _files(place.path) == before


@pytest.mark.parametrize("how", ["--shared", "--filter=blob:none"])
def test_clones_that_have_not_all_objects_themselves_come_back(
    place: Place, tmp_path: Path, how: str
) -> None:
    place.project.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    source = f"file://{place.path}" if "filter" in how else str(place.path)
    place.project.git("clone", "-q", how, source, str(clone))
    before = tree_of(clone)
    agents = place.world.agents.at(clone)

    agents("run", "--in-place", "--", "sh", "-c", GONE + "rm -rf .git").ok()
    agents("undo").ok()

    assert _files(clone) == before


def test_bytes_that_git_would_change_are_never_taken_from_it(place: Place) -> None:
    project = place.project
    project.write("line.ends", "one\r\ntwo\r\n")
    project.git("config", "filter.turned.clean", "tr a-c d-f")
    project.git("config", "filter.turned.smudge", "tr d-f a-c")
    project.write(".gitattributes", "*.odd filter=turned\n*.id ident\n")
    project.write("some.odd", "abc\n")
    project.write("some.id", "$Id$\n")
    project.git("-c", "core.autocrlf=input", "add", "-A")
    project.git("-c", "core.autocrlf=input", "commit", "-qm", "odd")
    project.git("gc", "-q")
    settled(place)
    before = tree_of(place.path)

    place.run(GONE + "rm some.odd some.id line.ends; rm -rf .git").ok()

    assert not {"line.ends", "some.odd", "some.id"} & unread(place)
    place("undo").ok()
    assert _files(place.path) == before


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_what_the_user_said_to_be_unchanged_is_read(place: Place, flag: str) -> None:
    place.project.git("update-index", flag, "d1/e1/f1.txt")
    place.project.write("d1/e1/f1.txt", "changed\n")
    settled(place)
    before = tree_of(place.path)

    place.run(GONE).ok()

    assert "d1/e1/f1.txt" not in unread(place)
    place("undo").ok()
    assert _files(place.path) == before


def test_a_file_that_is_as_young_as_the_index_is_read(place: Place) -> None:
    path = place.path / "d1/e1/f1.txt"
    path.write_text("99\n" * 30)
    place.project.git("add", "-A")
    place.project.git("commit", "-qm", "young")
    place.project.git("gc", "-q")
    moment = path.stat().st_mtime_ns + 10_000_000
    os.utime(place.path / ".git/index", ns=(moment, moment))
    before = tree_of(place.path)

    place.run(GONE).ok()

    assert "d1/e1/f1.txt" not in unread(place)
    place("undo").ok()
    assert _files(place.path) == before


def test_modes_that_git_does_not_know_come_back(place: Place) -> None:
    (place.path / "d1/e1/f1.txt").chmod(0o640)
    place.project.git("config", "core.fileMode", "false")
    settled(place)
    before = tree_of(place.path)

    place.run("chmod 777 tool.sh d1/e1/f1.txt; rm -rf d2").ok()

    place("undo").ok()
    assert _files(place.path) == before


def test_an_index_of_version_4_is_read_too(place: Place) -> None:
    place.project.git("update-index", "--index-version", "4")
    settled(place)
    before = tree_of(place.path)

    place.run(GONE + "rm -rf .git").ok()

    assert len(unread(place)) >= MANY
    place("undo").ok()
    assert _files(place.path) == before


def _files(place: Path) -> Tree:
    """Without our own note: it lies in the tree once the repository is gone."""
    return {path: found for path, found in tree_of(place).items() if path != os.fsencode(MARKER)}
