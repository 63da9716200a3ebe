"""A real folder, and sandboxes made from it, for the tests of the folder adapter."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.runners import adapters_in, database_workers
from tests.support.trees import Tree, facts

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import FS_DIRECTORY
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.sandboxes import SandboxesByType

PLAN = PlanId("01J00000000000000000000001")
RESOURCE = ResourceId("01J00000000000000000000003")


class FolderWorld:
    """One project folder and one plan on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "my project"
        self.project.mkdir(parents=True)
        self.workers = database_workers()
        self.adapters = adapters_in(root / "data", self.workers)
        self.snapshots = CheckpointManager(self.adapters)
        self.registry = SandboxesByType(self.adapters)
        self.resource = self._resource(())

    def _resource(self, exclude: tuple[str, ...]) -> PlanResource:
        place = self.registry.path_for(PLAN, "assets", FS_DIRECTORY.type)
        return PlanResource(
            resource_id=RESOURCE,
            plan_id=PLAN,
            name="assets",
            type=FS_DIRECTORY.type,
            location=str(self.project),
            base="folder:test",
            sandbox_path=place,
            exclude=exclude,
        )

    @property
    def sandbox(self) -> Path:
        return Path(self.resource.sandbox_path)

    def inspect(self, location: Path | None = None, exclude: tuple[str, ...] = ()):
        spec = ResourceSpec(
            name="assets",
            type=FS_DIRECTORY.type,
            location=str(location or self.project),
            exclude=exclude,
        )
        return self.registry.inspect(spec, PLAN, include_uncommitted=False)

    def begin(self, *exclude: str) -> None:
        """Make the sandbox and its first snapshot, as executing a plan does."""
        self.resource = self._resource(exclude)
        self.registry.create(self.resource)
        self.resource = self.resource.ready(self.snapshots.capture(self.resource).ref)

    def in_project(self, command: str) -> None:
        _sh(command, self.project)

    def work(self, command: str) -> None:
        _sh(command, self.sandbox)

    def changes(self) -> dict[str, tuple[str, int | None, int | None]]:
        files = self.registry.diff(self.resource).files
        return {f.path: (f.kind.value, f.insertions, f.deletions) for f in files}

    def prepare(self) -> PreparedApply:
        return self.registry.prepare_apply(self.resource, ApplyOptions(message="m"))

    def carry_out(self, prepared: PreparedApply) -> str:
        """As an apply that nothing stands in the way of: carried out and settled."""
        ref = self.registry.carry_out(self.resource, prepared)
        self.registry.finish(self.resource, prepared)
        return ref

    def apply(self) -> str:
        return self.carry_out(self.prepare())

    def applied(self, prepared: PreparedApply, ref: str):
        return self.registry.applied_diff(replace(self.resource, intent=prepared.token), ref)


def tree(root: Path) -> Tree:
    """Every path with kind, permissions, and content or target; links are not followed."""
    top = os.fsencode(root)
    found: Tree = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = folder + b"/" + name
            found[os.path.relpath(path, top)] = facts(path)
    return found


def inodes(root: Path) -> dict[str, tuple[int, int]]:
    found = (path for path in root.rglob("*") if not path.is_dir())
    return {str(p.relative_to(root)): (p.lstat().st_ino, p.lstat().st_mtime_ns) for p in found}


def _sh(command: str, where: Path) -> None:
    done = subprocess.run(["/bin/sh", "-ec", command], cwd=where, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


MakeWorld = Callable[[], FolderWorld]


@pytest.fixture
def world(tmp_path: Path) -> FolderWorld:
    return FolderWorld(tmp_path / "w")
