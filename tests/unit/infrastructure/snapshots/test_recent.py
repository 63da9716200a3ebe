"""Rows lie in the small tables or in the large ones, and nobody can tell which."""

import sqlite3
from contextlib import closing

import pytest

from cleveragents.infrastructure.files import rooted_folder as open_below
from cleveragents.infrastructure.snapshots.store import recent_rows as recent
from cleveragents.infrastructure.snapshots.store.connections import Connections
from cleveragents.infrastructure.snapshots.store.maintenance import SnapshotFiles
from cleveragents.infrastructure.snapshots.store.plan_store import PlanStore
from cleveragents.infrastructure.snapshots.store.recent_rows import compact

SMALL = ("recent_paths", "recent_content_ids")
LARGE = ("versions", "entries", "content_ids")
VERSIONS = "SELECT (SELECT COUNT(*) FROM versions) + COUNT(*) FROM recent_paths WHERE seq"
WORK = (
    "echo new > a.txt; rm src/b.txt; mkdir made; echo m > made/m",
    "echo newer > a.txt; echo two > src/b.txt; rm -r made; chmod 600 run.sh",
    "rm a.txt; mkdir a.txt; ln -s x a.txt/link; echo m > m",
    "rm -r a.txt; echo new > a.txt; echo 1 > src/c; echo 2 > src/d",
)


def _count(world, tables: tuple[str, ...]) -> int:
    with closing(sqlite3.connect(world.database)) as db:
        return sum(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables)


def _ask(world, question: str) -> int:
    with closing(sqlite3.connect(world.database)) as db:
        return db.execute(question).fetchone()[0]


def _pour(world) -> None:
    with closing(sqlite3.connect(world.database)) as db, db:
        compact(db)


def _many(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(recent, "MANY", rows)


@pytest.mark.parametrize("poured", [(), (0,), (1, 2), (0, 1, 2, 3), (3,)])
@pytest.mark.parametrize("many", [0, 3, 5000])
def test_every_snapshot_is_what_it_was(world, monkeypatch, poured, many) -> None:
    _many(monkeypatch, many)
    taken = [(world.capture(), world.state())]
    for number, work in enumerate(WORK):
        world.work(work)
        taken.append((world.capture(), world.state()))
        if number in poured:
            _pour(world)
    assert world.new_process().capture(world.resource).ref == taken[-1][0].ref
    for snapshot, state in (*taken, *reversed(taken)):
        world.verify(snapshot.ref, snapshot.state_hash)
        world.restore(snapshot.ref)
        assert world.state() == state


def test_a_few_rows_go_to_the_small_tables_and_many_to_the_large(world, monkeypatch) -> None:
    world.capture()
    assert _count(world, SMALL) > 0
    assert _count(world, LARGE) == 0
    world.work("for n in 1 2 3 4 5 6 7 8; do echo $n > n$n; done")
    _many(monkeypatch, 3)
    world.capture()
    assert _count(world, SMALL) == 0
    assert _count(world, LARGE) > 16


@pytest.mark.parametrize("poured", [True, False])
def test_a_look_that_finds_only_new_times_makes_no_version(world, poured) -> None:
    first = world.capture()
    versions = _ask(world, VERSIONS)
    for _ in range(3):
        world.work("touch a.txt src/b.txt")
        assert world.capture().ref == first.ref
        if poured:
            _pour(world)
    assert _ask(world, VERSIONS) == versions
    # But the times are known from then on.
    _pour(world)
    known = _ask(world, "SELECT mtime_ns FROM entries WHERE path = X'612E747874'")
    assert known == (world.sandbox / "a.txt").stat().st_mtime_ns


@pytest.mark.parametrize("poured", [True, False])
def test_of_a_path_that_comes_and_goes_the_last_counts(world, poured) -> None:
    world.work("mkdir made; echo 1 > made/stays")
    world.capture()
    for work in ("echo 1 > made/one; echo 2 > made/two", "rm made/one", "echo 3 > made/one"):
        world.work(work)
        world.capture()
    world.work("rm made/two")
    world.capture()
    if poured:
        _pour(world)
        assert _ask(world, "SELECT COUNT(*) FROM entries WHERE kind = 0") == 0
    with world.trees.reading(world.resource) as reader:
        present = reader.session.present
        assert sorted(present.below(b"made")) == [b"made/one", b"made/stays"]
        assert sorted(present.children(b"made")) == [b"made/one", b"made/stays"]
        assert set(reader.session.manifest.seen) >= {b"made", b"made/one", b"made/stays"}
        assert b"made/two" not in reader.session.manifest.seen


@pytest.mark.parametrize("poured", [True, False])
def test_what_snapshots_hold_is_counted_by_version(world, poured) -> None:
    (world.sandbox / "one").write_bytes(b"x" * 1000)
    world.capture()
    world.work("touch one; cp one two")
    world.capture()
    world.work("touch one two")
    world.capture()
    if poured:
        _pour(world)
    (share,) = SnapshotFiles(
        str(world.database.parent), str(world.top / "scratch"), lambda: False
    ).shares()
    # Twice what is stored once, and what belongs to the git state.
    sides = _ask(
        world,
        "SELECT SUM(size) FROM side_contents JOIN contents USING (hash)",
    )
    assert share.content_bytes - sides == 2000


def test_pruning_leaves_nothing_in_the_small_tables(world) -> None:
    first = world.capture()
    world.work("rm a.txt; echo long-gone > gone")
    world.capture()
    world.work("rm gone; echo last > last")
    last = world.capture()
    world.store.keep_only(world.resource, [first.ref, last.ref])
    assert _count(world, SMALL) == 0
    world.restore(first.ref)
    assert world.state()[b"a.txt"][2] == b"one\n"


def test_what_gathered_is_poured_beside_the_work(world, monkeypatch) -> None:
    monkeypatch.setattr(recent, "_ENOUGH", 5)
    world.capture()
    connections = Connections()
    connections.written(str(world.database), 1000)
    connections.close(str(world.database))
    assert _count(world, SMALL) == 0
    assert _count(world, LARGE) > 10
    world.work("echo x > a.txt")
    assert [change.path for change in world.capture().changes] == ["a.txt"]


def test_pouring_does_not_make_the_store_larger_than_it_may_be(world, monkeypatch) -> None:
    monkeypatch.setattr(recent, "_ENOUGH", 5)
    world.work("for n in $(seq 300); do echo $n > n$n; done")
    snapshot = world.capture()
    world.store.close()
    rows = _count(world, SMALL)
    connections = Connections(limit_bytes=world.database.stat().st_size)
    connections.written(str(world.database), 1000)
    connections.close(str(world.database))
    assert _count(world, SMALL) == rows
    world.verify(snapshot.ref, snapshot.state_hash)


def test_a_fork_does_not_wait_for_a_writer_that_it_has_not_got(tmp_path, monkeypatch) -> None:
    connections = Connections()
    held = connections.writer("file")
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert connections.writer("file") is not held
    with PlanStore(str(tmp_path), "plan", "code", connections).writing():
        pass
    assert connections.writer("file") is connections.writer("file")


# --- opening below a folder ---------------------------------------------------------------------


def test_a_name_with_a_nul_is_refused_and_not_cut_short(world) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        open_below.opener(0, 0)(b"a.txt\0b")


def test_without_the_call_files_are_opened_step_by_step(world, monkeypatch) -> None:
    monkeypatch.setattr(open_below, "_OPENAT2", 100_000)
    first = world.capture()
    world.work("echo changed > src/b.txt")
    assert [change.path for change in world.capture().changes] == ["src/b.txt"]
    world.restore(first.ref)
    assert world.state()[b"src/b.txt"][2] == b"two\n"
