"""Many files are written where they are; one that somebody else has open or shares is replaced."""

import mmap
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleveragents.infrastructure.files.entry import Entry, Kind
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.snapshots.tree.diff import PathDifference
from cleveragents.infrastructure.snapshots.tree.restore.in_place import fit_in_place

MANY = 24
SPAN = range(MANY)


@pytest.fixture
def many(world):
    """Two states in which every one of many files differs, in size and time too."""
    world.work("mkdir many")
    for number in SPAN:
        (world.sandbox / f"many/{number}").write_text(f"first {number}\n" * (1 + number % 3))
        os.utime(world.sandbox / f"many/{number}", ns=(10**18, 10**18 + number))
    world.first, world.before = world.capture(), world.state()
    _write_second(world)
    return world


def _write_second(world) -> None:
    for number in SPAN:
        (world.sandbox / f"many/{number}").write_text(f"second {number}\n" * (1 + (number + 1) % 3))


def _inodes(world) -> list[int]:
    return [(world.sandbox / f"many/{number}").stat().st_ino for number in SPAN]


def _went_back(world, replaced: set[int]) -> bool:
    """All are as they were, and these are other files than before."""
    inodes = _inodes(world)
    world.capture()
    world.restore(world.first.ref)
    moved = {
        n for n, (old, new) in enumerate(zip(inodes, _inodes(world), strict=True)) if old - new
    }
    return world.state() == world.before and moved == replaced


def test_they_stay_the_files_that_they_were_with_their_old_bytes_and_times(many) -> None:
    assert _went_back(many, replaced=set())
    times = [(many.sandbox / f"many/{number}").stat().st_mtime_ns for number in SPAN]
    assert times == [10**18 + number for number in SPAN]


def test_modes_come_back_too(many) -> None:
    many.work("chmod 755 many/3; chmod 600 many/4")
    assert _went_back(many, replaced=set())


def test_whoever_has_one_open_goes_on_reading_what_he_had(many) -> None:
    path = many.sandbox / "many/5"
    now = path.read_bytes()
    with path.open("rb", buffering=0) as reader:
        assert _went_back(many, replaced={5})
        assert reader.read() == now


def test_whoever_has_one_mapped_sees_no_other_bytes(many) -> None:
    path = many.sandbox / "many/6"
    now = path.read_bytes()
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    with mapped:
        assert _went_back(many, replaced={6})
        assert mapped[:] == now


def test_a_second_name_keeps_its_bytes(many, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.hardlink_to(many.sandbox / "many/7")
    now = other.read_bytes()
    assert _went_back(many, replaced={7})
    assert other.read_bytes() == now


def test_one_that_is_closed_to_writers_is_replaced(many) -> None:
    many.work("chmod 444 many/8")
    assert _went_back(many, replaced={8})


def test_a_program_that_runs_is_replaced(many) -> None:
    path = many.sandbox / "many/9"
    path.unlink()
    path.write_bytes(Path("/bin/sleep").read_bytes())
    path.chmod(0o755)
    with subprocess.Popen([path, "60"]) as running:
        try:
            assert _went_back(many, replaced={9})
        finally:
            running.kill()


def test_what_is_no_file_any_more_becomes_one(many) -> None:
    many.work("rm many/1 many/2 many/3 many/4; mkdir -p many/1/in; ln -s 5 many/2; mkfifo many/3")
    inodes = _inodes_of(many, range(5, MANY))
    many.capture()
    many.restore(many.first.ref)
    assert many.state() == many.before
    assert _inodes_of(many, range(5, MANY)) == inodes


def _inodes_of(world, numbers: range) -> list[int]:
    return [(world.sandbox / f"many/{number}").stat().st_ino for number in numbers]


def test_nobody_who_opens_one_meanwhile_reads_half_of_it(many) -> None:
    whole = [letter * 3_000_000 for letter in (b"a", b"b")]
    path = many.sandbox / "many/10"
    path.write_bytes(whole[0])
    first = many.capture()
    _write_second(many)
    path.write_bytes(whole[1])
    second = many.capture()
    watching = subprocess.Popen(
        [sys.executable, "-c", _READER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with watching as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        for target in (first, second) * 10:
            many.restore(target.ref)
        told = reader.communicate(b"")[0].split()
    assert set(told) <= {b"a", b"b"}
    assert told, "it never got to read, and has shown nothing"


# Closes and opens it all the time; between its readings the restore may find it free.
_READER = """
import select, sys, time
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    data = open(sys.argv[1], "rb").read()
    whole = len(data) == 3000000 and len(set(data)) == 1
    print(chr(data[0]) if whole else "half", flush=True)
    time.sleep(0.001)
"""


def test_the_next_capture_finds_nothing_new(many) -> None:
    many.capture()
    many.restore(many.first.ref)
    assert many.capture().state_hash == many.first.state_hash
    many.new_process()
    assert many.capture().changes == ()


def test_chosen_paths_are_written_where_they_are_too(many) -> None:
    inodes = _inodes(many)
    many.capture()
    many.store.restore_paths(many.resource, many.first.ref, ["many"])
    assert many.state() == many.before
    assert _inodes(many) == inodes


# --- which contents are kept in memory for it -----------------------------------------------------


def _rewritten(count: int, size: int = 10) -> Iterator[PathDifference]:
    for number in range(count):
        name = b"%d" % number
        old = Entry(path=name, kind=Kind.FILE, hash=b"old")
        yield PathDifference(name, old, old._replace(hash=name, size=size))


def test_a_few_are_replaced_and_many_written(tmp_path: Path) -> None:
    with RootedFolder(str(tmp_path)) as anchor:
        assert not fit_in_place(anchor, _rewritten(16))
        assert len(fit_in_place(anchor, _rewritten(17))) == 17


def test_no_more_than_fits_into_memory(tmp_path: Path) -> None:
    with RootedFolder(str(tmp_path)) as anchor:
        assert not fit_in_place(anchor, _rewritten(20, size=5 * 1024**2))
        assert len(fit_in_place(anchor, _rewritten(50, size=4 * 1024**2))) == 32


def test_a_disk_without_room_is_found_full_before_anything_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = os.statvfs(tmp_path)
    fields = [*found]
    fields[os.statvfs_result.n_sequence_fields - 6] = 20  # f_bavail
    monkeypatch.setattr(os, "fstatvfs", lambda _: os.statvfs_result(fields))
    with RootedFolder(str(tmp_path)) as anchor:
        assert os.fstatvfs(0).f_bavail == 20
        assert not fit_in_place(anchor, _rewritten(20, size=found.f_frsize))


def test_a_file_that_comes_or_changes_its_kind_is_not_among_them(tmp_path: Path) -> None:
    rewritten = list(_rewritten(40))
    new = [item._replace(old=None) for item in rewritten[:10]]
    links = [item._replace(old=Entry(path=item.path, kind=Kind.LINK)) for item in rewritten[10:20]]
    with RootedFolder(str(tmp_path)) as anchor:
        held = fit_in_place(anchor, [*new, *links, *rewritten[20:]])
    assert held == {item.path for item in rewritten[20:]}


def test_a_file_that_was_left_half_written_is_noticed(many) -> None:
    """As a kill may leave it: other bytes, size and time as before; only its ctime has moved."""
    time.sleep(0.06)
    many.new_process()
    many.capture()
    path = many.sandbox / "many/11"
    found = path.stat()
    with path.open("r+b") as file:
        file.write(b"X")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(found.st_mode)
    many.new_process()
    assert [change.path for change in many.capture().changes] == ["many/11"]
