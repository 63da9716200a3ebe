"""What the system refuses the store is told by name, with what to do; nothing stored is harmed."""

import errno
import os
import resource as limits
import sqlite3
import stat
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from cleveragents.domain.errors import RestoreFailedError, SnapshotDamagedError, SnapshotFailedError
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.infrastructure.snapshots.store.disk_limits import (
    bytes_of_others,
    hint_for,
    refused,
)

MIB = 1 << 20


@contextmanager
def largest_file(size: int) -> Generator[None]:
    soft, hard = limits.getrlimit(limits.RLIMIT_FSIZE)
    limits.setrlimit(limits.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        limits.setrlimit(limits.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def small_disk(place: Path, size: str) -> Generator[None]:
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here: that needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_store_that_cannot_grow_leaves_the_snapshots_before_as_they_were(world) -> None:
    first, before = world.capture(), world.state()
    for number in range(4):
        (world.sandbox / f"big{number}").write_bytes(os.urandom(MIB))
    with largest_file(2 * MIB), pytest.raises(SnapshotFailedError, match="snapshot store") as told:
        world.capture()
    assert str(world.database) in str(told.value)
    world.verify(first.ref, first.state_hash)
    second, after = world.capture(), world.state()
    world.restore(first.ref)
    assert world.state() == before
    world.restore(second.ref)
    assert world.state() == after


@pytest.mark.parametrize("fresh", [False, True], ids=["kept open", "opened anew"])
def test_a_full_disk_is_told_as_one_and_not_as_our_limit(world, *, fresh: bool) -> None:
    with small_disk(world.top / "snapshots", "2m"):
        first = world.capture()
        (world.sandbox / "big").write_bytes(os.urandom(4 * MIB))
        if fresh:
            world.store.close()
            world.new_process()
        with pytest.raises(SnapshotFailedError) as told:
            world.capture()
        assert "free some space" in told.value.hint
        world.verify(first.ref, first.state_hash)
        world.store.close()


def test_a_base_copy_that_cannot_be_stored_is_told_and_leaves_nothing(world) -> None:
    database = world.top / "data" / "app.db"
    database.parent.mkdir()
    with closing(sqlite3.connect(database)) as db:
        db.execute("CREATE TABLE t (b BLOB)")
        db.execute("INSERT INTO t VALUES (randomblob(4000000))")
        db.commit()
    resource = replace(world.resource, type=SQLITE.type, name="db", sandbox_path=str(database))
    with largest_file(2 * MIB), pytest.raises(SnapshotFailedError, match="first snapshot of `db`"):
        world.store.capture(resource)
    assert not list((world.top / "snapshots").glob("*.base*"))
    assert world.store.capture(resource).ref == "1"


def test_a_folder_in_the_place_of_the_store_is_told(world) -> None:
    world.database.mkdir(parents=True)
    with pytest.raises(SnapshotFailedError, match="snapshot store") as told:
        world.capture()
    assert "something else is in its place" in told.value.hint


def test_a_file_in_the_place_of_the_scratch_folder_is_told_by_a_restore(world) -> None:
    first = world.capture()
    world.work("rm a.txt")
    now = world.state()
    scratch = world.top / "scratch"
    if scratch.exists():
        scratch.rmdir()
    scratch.write_text("in the way")
    with pytest.raises(RestoreFailedError, match="scratch"):
        world.restore(first.ref)
    assert world.state() == now
    scratch.unlink()
    world.restore(first.ref)


def test_a_restore_that_may_not_write_its_files_is_told_and_changes_nothing(world) -> None:
    (world.sandbox / "big").write_bytes(os.urandom(2 * MIB))
    first, before = world.capture(), world.state()
    world.work("rm big; echo x > a.txt")
    world.capture()
    now = world.state()
    with largest_file(MIB), pytest.raises(RestoreFailedError, match="File too large"):
        world.restore(first.ref)
    assert world.state() == now
    world.restore(first.ref)
    assert world.state() == before


@pytest.mark.parametrize("size", [0, 50, 4096, 20_000], ids="{} bytes left".format)
def test_a_store_that_was_cut_off_is_damage_and_not_another_state(world, size: int) -> None:
    (world.sandbox / "new").write_bytes(os.urandom(300_000))
    first = world.capture()
    world.store.close()
    os.truncate(world.database, size)
    now = world.state()
    with pytest.raises(SnapshotDamagedError):
        world.verify(first.ref, first.state_hash)
    with pytest.raises(SnapshotDamagedError):
        world.restore(first.ref)
    assert world.state() == now


def test_the_room_that_others_take_counts_no_file_of_ours(tmp_path: Path) -> None:
    (tmp_path / "ours.db").write_bytes(b"x" * 10)
    (tmp_path / "ours.db-wal").write_bytes(b"x" * 10)
    (tmp_path / "theirs.db").write_bytes(b"x" * 7)
    assert bytes_of_others(str(tmp_path), "ours.db") == 7


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EACCES, "readable and writable"),
        (errno.ENOTDIR, "something else"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EIO, "check the disk"),
        (None, "check the disk"),
    ],
)
def test_each_refusal_has_its_way_out(number: int | None, words: str) -> None:
    assert words in hint_for(number, "/p")


def test_an_error_without_words_of_its_own_is_told_too() -> None:
    assert "odd" in str(refused("it failed", "/p", OSError("odd")))


# --- what cannot be captured ----------------------------------------------------------------------


def test_a_device_is_reported_and_left_alone(world) -> None:
    first = world.capture()
    try:
        os.mknod(world.sandbox / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices can be made by root only")
    again = world.capture()
    assert (again.ref, again.skipped) == (first.ref, ("null",))
    world.restore(first.ref)
    assert stat.S_ISCHR((world.sandbox / "null").stat().st_mode)
