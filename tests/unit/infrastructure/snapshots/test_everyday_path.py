"""The everyday path keeps things open and known between calls, and is never wrong because of it."""

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from cleveragents.domain.errors import SnapshotDamagedError, SnapshotFailedError
from cleveragents.infrastructure.files.filesystems import is_local, sync_all
from cleveragents.infrastructure.snapshots.store.connections import Connections
from cleveragents.infrastructure.snapshots.store.plan_store import PlanStore

# --- what stays open ----------------------------------------------------------------------------


def _opened(path: Path) -> int:
    return sum(fd.resolve() == path for fd in Path("/proc/self/fd").iterdir())


def test_the_file_stays_open_until_the_store_is_closed(world) -> None:
    for _ in range(3):
        world.capture()
        assert _opened(world.database) == 1
    world.store.close()
    assert _opened(world.database) == 0
    assert world.capture().ref == "1"


def test_a_file_that_another_process_removed_is_not_written_to(world) -> None:
    world.capture()
    store = world.store
    world.new_process().forget(world.resource.plan_id)
    world.work("echo x > a.txt")
    world.store = store
    assert world.capture().ref == "1"
    assert world.database.exists()


def test_another_process_may_take_snapshots_in_between(world) -> None:
    world.capture()
    store = world.store
    world.work("echo x > a.txt")
    assert world.new_process().capture(world.resource).ref == "2"
    world.work("echo y > src/b.txt")
    world.store = store
    third = world.capture()
    assert [change.path for change in third.changes] == ["src/b.txt"]


def test_a_failed_transaction_leaves_no_connection(tmp_path: Path) -> None:
    connections = Connections()
    store = PlanStore(str(tmp_path), "plan", "code", connections)
    with pytest.raises(ZeroDivisionError), store.writing():
        _ = 1 / 0
    assert _opened(tmp_path / "plan.db") == 0


def test_two_threads_have_a_connection_each(tmp_path: Path) -> None:
    store = PlanStore(str(tmp_path), "plan", "code", Connections())
    seen: list[object] = []

    def read() -> None:
        with store.reading() as db:
            seen.append(db)

    with store.reading() as db:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        seen.append(db)
    assert seen[0] is not seen[1]


def test_a_fork_opens_its_own(tmp_path: Path) -> None:
    store = PlanStore(str(tmp_path), "plan", "code", Connections())
    with store.reading() as mine:
        pass
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with store.reading() as other:
                status = int(other is mine)
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def _insert(store: PlanStore, rows: int) -> None:
    with store.writing() as db:
        db.executemany(
            "INSERT INTO contents VALUES (NULL, ?, 0, 0, ?)",
            [(number.to_bytes(4, "big"), bytes(100)) for number in range(rows)],
        )


def test_the_journal_of_much_work_is_written_back_beside_it(tmp_path: Path) -> None:
    connections = Connections()
    store, file = PlanStore(str(tmp_path), "plan", "code", connections), tmp_path / "plan.db"
    with store.reading():
        small = file.stat().st_size
    _insert(store, 3000)
    deadline = time.monotonic() + 30
    while file.stat().st_size < small + 300_000:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    connections.close()
    with store.reading() as db:
        assert db.execute("SELECT COUNT(*) FROM contents").fetchone() == (3000,)


def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    connections = Connections()
    store = PlanStore(str(tmp_path), "plan", "code", connections)
    _insert(store, 2000)
    store.remove()
    connections.written(str(tmp_path / "plan.db"), 2000)
    connections.close(str(tmp_path / "plan.db"))
    assert list(tmp_path.iterdir()) == []


# --- what is known ------------------------------------------------------------------------------


def test_what_a_failed_snapshot_had_seen_is_in_the_next(world, monkeypatch) -> None:
    world.capture()
    world.work("echo x > a.txt; mkdir -p n/m; echo y > n/m/y")
    from cleveragents.infrastructure.snapshots.tree import session

    def full(*_) -> None:
        raise SnapshotFailedError("full", "")

    with monkeypatch.context() as patch:
        patch.setattr(session.Versions, "add_snapshot", full)
        for _ in range(2):
            with pytest.raises(SnapshotFailedError):
                world.capture()
    assert {change.path for change in world.capture().changes} == {"a.txt", "n/m/y"}


def test_after_a_restore_nothing_is_new(world) -> None:
    first = world.capture()
    world.work(
        "for i in 1 2 3; do mkdir -p d$i/e; echo $i > d$i/e/f; done; rm -r src; chmod 600 a.txt"
    )
    world.capture()
    restored = world.restore(first.ref).snapshot
    again = world.capture()
    assert (again.ref, again.state_hash) == (restored.ref, first.state_hash)
    world.work("echo x > src/b.txt")
    assert [change.path for change in world.capture().changes] == ["src/b.txt"]


# --- restoring ----------------------------------------------------------------------------------


def test_many_files_come_back_with_equal_contents_and_modes(world) -> None:
    world.work("for i in $(seq 40); do mkdir -p m$((i % 7))/n; echo same > m$((i % 7))/n/f$i; done")
    world.work("chmod 0640 m1/n/f1; chmod 0500 m2/n; mkdir m3/empty; ln -s f3 m3/n/link")
    first, before = world.capture(), world.state()
    inodes = {path.stat().st_ino for path in world.sandbox.glob("m*/n/f*")}
    world.work(
        "chmod 700 m2/n; rm -r m1 m2; for f in m*/n/f*; do echo other > $f; done; mkdir m3/n/x"
    )
    world.capture()
    world.restore(first.ref)
    assert world.state() == before
    assert len({path.stat().st_ino for path in world.sandbox.glob("m*/n/f*")}) == len(inodes)
    assert stat.S_IMODE((world.sandbox / "m2/n").stat().st_mode) == 0o500


def test_a_folder_in_the_place_of_a_file_makes_room(world) -> None:
    first, before = world.capture(), world.state()
    world.work("rm a.txt link; mkdir -p a.txt/b/c link; echo x > a.txt/b/c/d")
    world.restore(first.ref)
    assert world.state() == before


def _index(world) -> Path:
    return Path(world.work("git rev-parse --git-path index").strip())


def test_git_is_left_alone_if_only_files_changed(world) -> None:
    first = world.capture()
    world.work("sleep 0.1; echo x > a.txt")
    world.capture()
    before = _index(world).stat()
    world.restore(first.ref)
    assert _index(world).stat().st_ino == before.st_ino
    assert world.capture().state_hash == first.state_hash


@pytest.mark.parametrize("damage", ["touch $(git rev-parse --git-path index).lock", "rm .git"])
def test_git_is_put_right_if_only_that_changed(world, damage: str) -> None:
    world.work("sleep 0.1")
    first = world.capture()
    world.work(f"echo x > a.txt; {damage}")
    world.restore(first.ref)
    assert world.work("git status --porcelain") == ""
    assert not _index(world).with_name("index.lock").exists()


def test_git_objects_that_got_lost_come_back(world) -> None:
    world.work("echo staged > new; git add new")
    first = world.capture()
    blob = world.work("git rev-parse :new").strip()
    world.work("echo x > a.txt")
    (world.top / "sandbox.git/objects" / blob[:2] / blob[2:]).unlink()
    world.restore(first.ref)
    assert world.work("git cat-file blob :new") == "staged\n"


# --- the file system ----------------------------------------------------------------------------


def test_what_is_not_a_local_file_system_is_not_watched(tmp_path: Path) -> None:
    with Path("/proc/self/status").open() as file:
        assert not is_local(file.fileno())
    with (tmp_path / "f").open("w") as file:
        sync_all(file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_all(-1)
    assert not is_local(-1)


def test_damage_is_still_found_on_the_way_back(world) -> None:
    first = world.capture()
    with pytest.raises(SnapshotDamagedError):
        world.restore("9")
    world.work("echo x > a.txt")
    world.restore(first.ref)
