"""A project with a sandbox made from it, and the store that takes snapshots of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.runners import adapters_in

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine

sys.path.insert(0, str(Path(__file__).parents[4]))

from benchmarks.workers import PLAN, checkout_of
from tests.support.trees import tree_of

MAKE = (
    "git init -q -b main . && git config user.name n && git config user.email e@x;"
    "mkdir src && echo one > a.txt && echo two > src/b.txt && printf x > run.sh;"
    "chmod +x run.sh && ln -s a.txt link && echo '*.log' > .gitignore"
)
State = dict[bytes, tuple[str, int, bytes]]


class World:
    """`template` is a project to copy, quicker than making one; `setup` adds to a new one."""

    def __init__(self, top: Path, setup: str = "", template: Path | None = None) -> None:
        self.top = top
        self.project = top / "project"
        self.sandbox = top / "sandbox"
        if template is None:
            self.project.mkdir(parents=True)
            self.sh(f"{MAKE}; {setup or 'true'}; git add -A && git commit -qm base")
        else:
            shutil.copytree(template, self.project, symlinks=True)
        base = self.sh("git rev-parse HEAD").strip()
        self.resource = checkout_of(self.project, self.sandbox, base)
        self.store = self.new_process()

    def new_process(self) -> CheckpointManager:
        self.adapters = adapters_in(self.top)
        self.store = CheckpointManager(self.adapters)
        return self.store

    @property
    def trees(self) -> TreeEngine:
        engine = self.adapters.of(self.resource).snapshots
        assert isinstance(engine, TreeEngine)
        return engine

    def excluding(self, *patterns: str) -> None:
        self.resource = replace(self.resource, exclude=patterns)

    def sh(self, command: str, where: Path | None = None) -> str:
        done = subprocess.run(
            ["/bin/sh", "-ec", command], cwd=where or self.project, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return os.fsdecode(done.stdout)

    def work(self, command: str) -> str:
        return self.sh(command, self.sandbox)

    def capture(self):
        return self.store.capture(self.resource)

    def restore(self, ref: str):
        return self.store.restore(self.resource, ref)

    def verify(self, ref: str, state_hash: str) -> None:
        expected = Expected(ref=ref, state_hash=state_hash)
        for reason in self.store.damages(self.resource, [expected]).values():
            raise SnapshotDamagedError(self.resource.name, reason)

    def git(self) -> str:
        """HEAD, branch and index, as text."""
        return self.work("git symbolic-ref -q HEAD || true; git rev-parse HEAD; git ls-files -s")

    def state(self) -> State:
        return look(self.sandbox)

    @property
    def database(self) -> Path:
        return self.top / "snapshots" / f"{PLAN}.db"


def look(root: Path) -> State:
    """Every path but the top `.git`, with what it is."""
    return {path: facts for path, facts in tree_of(root).items() if facts[0] != "special"}


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return World(tmp_path_factory.mktemp("template") / "w").project


@pytest.fixture
def world(tmp_path: Path, template: Path) -> World:
    return World(tmp_path / "w", template=template)


@pytest.fixture
def make_world(tmp_path: Path) -> Callable[..., World]:
    return lambda setup="", top="made": World(tmp_path / top, setup)


@pytest.fixture(scope="session")
def world_class() -> type[World]:
    return World
