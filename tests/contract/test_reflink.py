"""On a file system that can share blocks, copies cost no room; elsewhere this is skipped."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from fs_world import FolderWorld

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.infrastructure.files.copy.parallel_copy import BranchCopy

MIB = 1 << 20
SIZE = 16 * MIB
MAKERS = {"xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@pytest.fixture(params=list(MAKERS))
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Path]:
    with ExitStack() as stack:
        yield made_disk(tmp_path, request.param, stack)


def made_disk(folder: Path, kind: str, stack: ExitStack) -> Path:
    """A file system of its own, until the stack is closed."""
    maker, *options = MAKERS[kind]
    if shutil.which(maker, path=PATH) is None:
        pytest.skip(f"{maker} is not installed")
    image, place = folder / "image", folder / "disk"
    image.touch()
    os.truncate(image, 400 * MIB)
    place.mkdir()
    made = [str(shutil.which(maker, path=PATH)), *options, str(image)]
    subprocess.run(made, check=True, capture_output=True)
    mount = ["mount", "-o", "loop", "-t", kind, str(image), str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip(f"no {kind} can be mounted here: that needs root and a loop device")
    stack.callback(subprocess.run, ["umount", "--lazy", str(place)], check=True)
    return place


def used(disk: Path) -> int:
    os.sync()
    found = os.statvfs(disk)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def test_a_folder_is_copied_without_taking_room_and_stays_apart(disk: Path) -> None:
    world = FolderWorld(disk / "w")
    (world.project / "big").write_bytes(os.urandom(SIZE))
    (world.project / "odd size").write_bytes(os.urandom(MIB + 17))
    before = used(disk)
    world.registry.create(world.resource)
    assert used(disk) - before < SIZE // 4
    for name in ("big", "odd size"):
        assert (world.sandbox / name).read_bytes() == (world.project / name).read_bytes()
    project = (world.project / "big").read_bytes()
    with (world.sandbox / "big").open("r+b") as file:
        file.seek(5 * MIB)
        file.write(b"only in the sandbox")
    assert (world.project / "big").read_bytes() == project


def test_the_first_snapshot_of_a_database_takes_no_room_and_stays_apart(disk: Path) -> None:
    world = FolderWorld(disk / "w")
    path = disk / "w" / "db" / "app.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)")
        db.execute(f"INSERT INTO t (b) VALUES (randomblob({SIZE}))")
        db.commit()
    resource = PlanResource(
        resource_id=ResourceId("01J00000000000000000000004"),
        plan_id=PlanId("01J00000000000000000000002"),
        name="db",
        type=SQLITE.type,
        location=str(path),
        base="",
        sandbox_path=str(path),
    )
    then, before = path.read_bytes(), used(disk)
    first = world.snapshots.capture(resource)
    assert used(disk) - before < SIZE // 4
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE t SET b=zeroblob(1000000)")
        db.commit()
    world.snapshots.capture(resource)
    expected = Expected(ref=first.ref, state_hash=first.state_hash)
    assert world.snapshots.damages(resource, [expected]) == {}
    world.snapshots.restore(resource, first.ref)
    assert path.read_bytes() == then
    world.snapshots.close()


def test_a_branch_of_many_small_files_takes_little_room_and_stays_apart(disk: Path) -> None:
    parent, child = disk / "parent", disk / "child"
    parent.mkdir()
    child.mkdir()
    for number in range(400):
        (parent / f"f{number}").write_bytes(os.urandom(16_000))
    before = used(disk)
    BranchCopy(os.fsencode(parent), os.fsencode(child), frozenset()).run()
    assert used(disk) - before < 400 * 16_000 // 5
    with (child / "f7").open("r+b") as file:
        file.write(b"only in the child")
    assert not (parent / "f7").read_bytes().startswith(b"only")
    assert (child / "f8").read_bytes() == (parent / "f8").read_bytes()
