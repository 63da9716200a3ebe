"""A real database and a plan on it, for the tests of databases as resources."""

import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.support.runners import adapters_in, database_workers

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.sandbox.sandboxes import SandboxesByType

PLAN = PlanId("01J00000000000000000000001")
JOURNALS = ["delete", "wal"]


class World:
    def __init__(self, top: Path) -> None:
        self.top = top
        self.folder = top / "my project"
        self.folder.mkdir()
        self.path = self.folder / "app ?#%.db"
        self.workers = database_workers()
        self.adapters = adapters_in(top / "data", self.workers)
        self.snapshots = CheckpointManager(self.adapters)
        self.registry = SandboxesByType(self.adapters)

    def make(self, journal: str = "delete") -> None:
        self.sql(
            f"PRAGMA journal_mode={journal}",
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE)",
            "INSERT INTO users (name) VALUES ('ann'), ('bob'), ('cy')",
        )

    def sql(self, *statements: str, path: Path | None = None) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(path or self.path, isolation_level=None)) as db:
            return [row for statement in statements for row in db.execute(statement).fetchall()]

    def inspect(self, path: Path | None = None):
        spec = ResourceSpec(name="db", type=SQLITE.type, location=str(path or self.path))
        return self.registry.inspect(spec, PLAN, include_uncommitted=False)

    def planned(self) -> PlanResource:
        found = self.inspect()
        return PlanResource(
            resource_id=ResourceId("01J00000000000000000000003"),
            plan_id=PLAN,
            name="db",
            type=SQLITE.type,
            location=found.location,
            base=found.base,
            sandbox_path=self.registry.path_for(PLAN, "db", SQLITE.type, found.location),
            details=found.details,
        )

    def sandbox(self) -> PlanResource:
        resource = self.planned()
        self.registry.create(resource)
        return resource.ready(self.snapshots.capture(resource).ref)

    def prepare(self, resource: PlanResource) -> PreparedApply:
        return self.registry.prepare_apply(resource, ApplyOptions(message="work"))

    def apply(self, resource: PlanResource) -> str:
        return self.registry.carry_out(resource, self.prepare(resource))

    def users(self, path: Path | None = None) -> list[object]:
        return [name for (name,) in self.sql("SELECT name FROM users ORDER BY id", path=path)]

    def everything(self) -> dict[str, tuple[int, int, bytes]]:
        """The user's folder to the byte, with times."""
        found: dict[str, tuple[int, int, bytes]] = {}
        for path in self.folder.iterdir():
            status = path.stat()
            # An index of the log that every process makes for itself, and no content.
            index = path.name.endswith("-shm")
            time_ns = 0 if index else status.st_mtime_ns
            found[path.name] = (status.st_mode, time_ns, b"" if index else path.read_bytes())
        return found


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    made = World(tmp_path)
    yield made
    made.workers.close()


@contextmanager
def elsewhere(path: Path, *statements: str) -> Generator[None]:
    """Another process that has done these and keeps its connection open."""
    script = (
        "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for s in sys.argv[2:]: d.execute(s).fetchall()\n"
        "print('done', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(path), *statements]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"done\n"
        try:
            yield
        finally:
            other.kill()
