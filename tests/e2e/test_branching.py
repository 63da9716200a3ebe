"""The sandboxes of child plans: exact copies, and first snapshots that take over what is proven."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.trees import tree_of
from tests.support.world import World, shell

from cleveragents.application.ports.runtime import Sandboxes, SnapshotStore
from cleveragents.container import Container
from cleveragents.domain.checkpoint import Snapshot
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource, SandboxStatus
from cleveragents.infrastructure.files import read_path as examine
from cleveragents.infrastructure.sandbox.branching import Copied
from cleveragents.infrastructure.sandbox.git.adapter import GitAdapter
from cleveragents.infrastructure.sandbox.git.command import Git


class Family:
    """A plan that has done its steps, and a child of it that has no sandbox yet."""

    def __init__(self, container: Container, parent: PlanResource) -> None:
        self.sandboxes: Sandboxes = container._sandboxes
        self.snapshots: SnapshotStore = container._snapshots
        self._adapter = container._adapters.of(parent)
        self.parent = parent
        plan_id = PlanId(container._ids.new())
        self.child = replace(
            parent,
            plan_id=plan_id,
            resource_id=ResourceId(container._ids.new()),
            sandbox_path=self.sandboxes.path_for(plan_id, parent.name, parent.type),
            status=SandboxStatus.PENDING,
            base_snapshot=None,
            boundary=None,
            kept_with=parent.plan_id,
        )

    def copy(self) -> Copied:
        """The first half of a branch, before its snapshot."""
        assert isinstance(self._adapter, GitAdapter)
        return self._adapter.branches.copy(self.parent, self.child)

    def inherit(self, copied: Copied) -> Snapshot:
        assert isinstance(self._adapter, GitAdapter)
        return self._adapter.snapshots.inherit_snapshot(self.parent, self.child, copied)

    @property
    def place(self) -> Path:
        return Path(self.child.sandbox_path)


MakeFamily = Callable[..., Family]


@pytest.fixture
def family(world: World) -> MakeFamily:
    from tests.support.containers import make_container

    def make(command: str) -> Family:
        plan = world.run(shell(command))
        container = make_container(world)
        time.sleep(0.15)  # so that nothing is too young to be trusted
        resource = container.plan_queries.status(PlanId(plan.id)).resources[0]
        boundary = container._snapshots.capture(resource).ref
        return Family(container, replace(resource, boundary=boundary))

    return make


CHANGES = (
    "echo new > new.txt; rm src/old.py; chmod 600 README.md; mkdir -p empty/deep; "
    "ln -s nowhere dangling; printf 'x\\n' > 'line\nbreak'; echo log > a.log; git add new.txt"
)


def test_a_branch_is_the_parents_present_with_its_index(family: MakeFamily) -> None:
    made = family(CHANGES)
    made.sandboxes.branch(made.parent, made.child)

    assert tree_of(made.place) == tree_of(Path(made.parent.sandbox_path))
    assert _git(made.parent, "status", "--porcelain") == _git(made.child, "status", "--porcelain")
    assert _git(made.parent, "rev-parse", "HEAD") == _git(made.child, "rev-parse", "HEAD")
    branches = [_git(r, "branch", "--show-current") for r in (made.parent, made.child)]
    assert branches[0] != branches[1]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_modes_do_not_depend_on_the_umask(family: MakeFamily, umask: int) -> None:
    made = family("touch a b c; chmod 777 a; chmod 4755 b; chmod 000 c; mkdir d; chmod 2770 d")
    before = os.umask(umask)
    try:
        made.sandboxes.branch(made.parent, made.child)
    finally:
        os.umask(before)
    assert tree_of(made.place) == tree_of(Path(made.parent.sandbox_path))


def test_times_come_along(family: MakeFamily) -> None:
    made = family("touch -d 2001-02-03 src/app.py src")
    made.sandboxes.branch(made.parent, made.child)
    for name in ("src/app.py", "src", "README.md"):
        before = os.lstat(Path(made.parent.sandbox_path, name)).st_mtime_ns
        assert os.lstat(made.place / name).st_mtime_ns == before


def test_the_first_snapshot_reads_nothing_that_is_proven(
    family: MakeFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = family(CHANGES)
    copied = made.copy()
    read: list[bytes] = []
    real = examine._look_at_file

    def noted(fd: int, path: bytes, sink: examine.Sink) -> object:
        read.append(path)
        return real(fd, path, sink)

    monkeypatch.setattr(examine, "_look_at_file", noted)
    time.sleep(0.15)  # what was made just now might change without showing it, and would be read
    adopted = made.inherit(copied)
    assert read == []
    other = replace(made.child, resource_id=ResourceId("01J0000000000000000000000Z"))
    assert made.snapshots.capture(other).state_hash == adopted.state_hash


def test_the_first_snapshot_asks_git_nothing(
    family: MakeFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = family(CHANGES)
    copied = made.copy()
    asked: list[object] = []
    monkeypatch.setattr(Git, "run", lambda *args, **_: asked.append(args))
    made.inherit(copied)
    assert asked == []


def test_what_only_the_parents_repository_has_is_in_the_childs_snapshot(family: MakeFamily) -> None:
    commit = "git -c user.name=A -c user.email=a@b commit -qam own; git tag own"
    made = family(f"echo own >> README.md; {commit}")
    copied = made.copy()
    adopted = made.inherit(copied)
    own = _git(made.child, "rev-parse", "own")

    shutil.rmtree(f"{made.place}.git")
    made.snapshots.restore(made.child, adopted.ref)

    assert _git(made.child, "rev-parse", "own", "HEAD") == own * 2
    assert _git(made.child, "fsck", "--strict") == ""


def test_a_parent_that_moved_on_since_its_snapshot_is_read(family: MakeFamily) -> None:
    made = family(CHANGES)
    _git(made.parent, "tag", "later")
    _git(made.parent, "add", "-A")
    copied = made.copy()
    adopted = made.inherit(copied)
    other = replace(made.child, resource_id=ResourceId("01J0000000000000000000000Z"))
    assert made.snapshots.capture(other).state_hash == adopted.state_hash


def test_a_copy_that_was_changed_before_its_first_snapshot_is_read(family: MakeFamily) -> None:
    made = family(CHANGES)
    copied = made.copy()
    file = made.place / "src/app.py"
    before = file.stat()
    file.write_bytes(b"X" * before.st_size)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    adopted = made.inherit(copied)

    file.unlink()
    restored = made.snapshots.restore(made.child, adopted.ref)
    assert restored.snapshot.state_hash == adopted.state_hash
    assert file.read_bytes() == b"X" * before.st_size


def test_an_original_that_is_not_what_its_entry_says_is_not_trusted(family: MakeFamily) -> None:
    made = family(CHANGES)
    file = Path(made.parent.sandbox_path, "src/app.py")
    file.write_text("changed behind our back\n")
    copied = made.copy()

    adopted = made.inherit(copied)

    (made.place / "src/app.py").unlink()
    made.snapshots.restore(made.child, adopted.ref)
    assert (made.place / "src/app.py").read_text() == "changed behind our back\n"


def test_a_tree_too_deep_for_the_fast_copy_is_copied_the_careful_way(family: MakeFamily) -> None:
    name = "d" * 200
    made = family("; ".join([f"mkdir {name}", f"cd {name}"] * 25) + "; echo deep > file")
    copied = made.copy()
    assert copied == {}
    adopted = made.inherit(copied)
    other = replace(made.child, resource_id=ResourceId("01J0000000000000000000000Z"))
    assert made.snapshots.capture(other).state_hash == adopted.state_hash


def test_a_branch_whose_making_was_interrupted_is_made_anew(family: MakeFamily) -> None:
    made = family(CHANGES)
    made.sandboxes.branch(made.parent, made.child)
    (made.place / "README.md").unlink()
    made.sandboxes.branch(made.parent, made.child)
    assert tree_of(made.place) == tree_of(Path(made.parent.sandbox_path))


def _git(resource: PlanResource, *args: str) -> str:
    import subprocess

    done = subprocess.run(
        ["git", "-C", resource.sandbox_path, *args], capture_output=True, check=True
    )
    return done.stdout.decode()
