"""On btrfs a sandbox is a subvolume, and a branch of it a snapshot; elsewhere this is skipped."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fs_world import FolderWorld
from msgspec.structs import replace
from test_reflink import made_disk, used

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.containers import make_container
from tests.support.trees import tree_of
from tests.support.world import World, shell

from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource, SandboxStatus
from cleveragents.infrastructure.files import read_path as examine
from cleveragents.infrastructure.files.copy.btrfs import make_branchable
from cleveragents.infrastructure.sandbox.branching import Copied
from cleveragents.infrastructure.sandbox.folder.adapter import FolderAdapter

CHILD = PlanId("01J00000000000000000000009")
FIRST_INODE = 256  # of every subvolume, and of no other folder
FILES = 300


@pytest.fixture
def btrfs(tmp_path: Path) -> Generator[Path]:
    with ExitStack() as stack:
        yield made_disk(tmp_path, "btrfs", stack)


@pytest.fixture
def world(btrfs: Path) -> Generator[FolderWorld]:
    world = FolderWorld(btrfs / "w")
    for number in range(FILES):
        (world.project / f"f{number}").write_bytes(os.urandom(1000))
    (world.project / "empty").mkdir(mode=0o750)
    (world.project / "link").symlink_to("f1")
    (world.project / "f2").chmod(0o4711)
    world.registry.create(world.resource)
    yield world
    world.snapshots.close()


def child_of(parent: PlanResource, sandbox: str) -> PlanResource:
    return replace(
        parent,
        plan_id=CHILD,
        resource_id=ResourceId("01J0000000000000000000000A"),
        sandbox_path=sandbox,
        status=SandboxStatus.PENDING,
        base_snapshot=None,
        boundary=None,
        kept_with=parent.plan_id,
    )


def adapter(world: FolderWorld) -> FolderAdapter:
    found = world.adapters.of(world.resource)
    assert isinstance(found, FolderAdapter)
    return found


def copy(world: FolderWorld, parent: PlanResource, child: PlanResource) -> Copied:
    """The first half of a branch, before its snapshot."""
    return adapter(world).branches.copy(parent, child)


def branched(world: FolderWorld) -> PlanResource:
    parent = world.resource
    return child_of(parent, world.registry.path_for(CHILD, parent.name, parent.type))


def test_a_branch_takes_no_room_and_stays_apart(btrfs: Path, world: FolderWorld) -> None:
    assert os.lstat(world.sandbox).st_ino == FIRST_INODE
    time.sleep(0.1)
    boundary = world.snapshots.capture(world.resource).ref
    child = branched(world)
    # The journal of the snapshots is written back by a thread, which takes room too.
    world.snapshots.close()
    before = used(btrfs)
    copied = copy(world, replace(world.resource, boundary=boundary), child)
    assert used(btrfs) - before < FILES * 1000 // 2

    place = Path(child.sandbox_path)
    assert os.lstat(place).st_ino == FIRST_INODE
    assert tree_of(place) == tree_of(world.sandbox)
    assert set(copied) == {os.fsencode(p.name) for p in world.sandbox.iterdir()}
    (place / "f7").write_bytes(b"only in the child")
    (world.sandbox / "f8").write_bytes(b"only in the parent")
    assert (world.sandbox / "f7").read_bytes() != b"only in the child"
    assert (place / "f8").read_bytes() != b"only in the parent"
    world.registry.remove(child)
    assert not place.exists()


def test_the_first_snapshot_of_a_branch_reads_nothing(
    world: FolderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    time.sleep(0.1)
    parent = world.snapshots.capture(world.resource)
    child = branched(world)
    copied = copy(world, replace(world.resource, boundary=parent.ref), child)
    read: list[bytes] = []
    monkeypatch.setattr(examine, "_look_at_file", lambda _, path, __: read.append(path))
    assert (
        adapter(world).snapshots.inherit_snapshot(world.resource, child, copied).state_hash
        == parent.state_hash
    )
    assert read == []


@pytest.mark.parametrize("inside", ["subvolume", "pipe"])
def test_what_a_snapshot_would_have_otherwise_is_copied(world: FolderWorld, inside: str) -> None:
    if inside == "subvolume":
        make_branchable(str(world.sandbox / "sub"))
        (world.sandbox / "sub" / "file").write_text("in a subvolume of its own")
    else:
        os.mkfifo(world.sandbox / "pipe")
    child = branched(world)
    assert copy(world, world.resource, child) == {}
    place = Path(child.sandbox_path)
    assert not (place / "pipe").exists()
    (world.sandbox / "pipe").unlink(missing_ok=True)
    assert tree_of(place) == tree_of(world.sandbox)


def test_a_sandbox_that_is_no_subvolume_is_copied(world: FolderWorld) -> None:
    moved = world.sandbox.with_name("moved")
    subprocess.run(["cp", "-a", str(world.sandbox), str(moved)], check=True)
    parent = replace(world.resource, sandbox_path=str(moved))
    child = branched(world)
    assert copy(world, parent, child)
    assert os.lstat(child.sandbox_path).st_ino != FIRST_INODE
    assert tree_of(Path(child.sandbox_path)) == tree_of(moved)


def test_children_of_a_plan_work_on_snapshots_of_its_checkout(btrfs: Path) -> None:
    world = World(btrfs / "w")
    plan = world.use(
        shell("echo one > t.txt; rm src/old.py; echo log > a.log; rm -rf .git; git init -q"),
        {
            "name": "spawn",
            "subplans": {
                "parallel": True,
                "plans": [
                    {"name": n, "steps": [shell(f"echo {n} > {n}.txt; stat -c %i . >> i.txt")]}
                    for n in "ab"
                ],
                "merge_strategy": "last_wins",
            },
        },
        shell("rm a.txt"),
    )
    plan("execute").ok()
    assert (plan.sandbox / "i.txt").read_text() == f"{FIRST_INODE}\n"
    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    plan.rollback("start").ok()
    assert (plan.sandbox / "src/old.py").exists()
    resource = make_container(world).plan_queries.status(PlanId(plan.id)).resources[0]
    assert os.lstat(resource.sandbox_path).st_ino == FIRST_INODE
    plan("resume").ok()
    plan("apply", "--yes").ok()
