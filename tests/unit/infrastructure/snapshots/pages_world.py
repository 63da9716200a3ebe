"""A database file and its snapshots, for the tests of the pages engine."""

import sqlite3
import stat
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.runners import adapters_in, database_workers

from cleveragents.application.ports.runtime import Expected
from cleveragents.domain.errors import SnapshotDamagedError
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager

PLAN = PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
FILE = ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAX")


class Database:
    """A sandbox with one database, and the store that takes snapshots of it."""

    def __init__(self, top: Path, rows: int = 2000) -> None:
        self.top = top
        self.path = top / "sandbox" / "app.db"
        self.path.parent.mkdir(parents=True)
        self.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
        filling = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT {rows})"
        self.sql(f"{filling} INSERT INTO t (a) SELECT hex(randomblob(150)) FROM n")
        self.resource = PlanResource(
            resource_id=FILE,
            plan_id=PLAN,
            name="db",
            type=SQLITE.type,
            location=str(self.path),
            base="",
            sandbox_path=str(self.path),
        )
        self.workers = database_workers()
        self.store = CheckpointManager(adapters_in(top, self.workers))

    def sql(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            for statement in statements:
                db.execute(statement)

    def capture(self):
        return self.store.capture(self.resource)

    def restore(self, ref: str):
        return self.store.restore(self.resource, ref)

    def verify(self, snapshot) -> None:
        expected = Expected(ref=snapshot.ref, state_hash=snapshot.state_hash)
        for reason in self.store.damages(self.resource, [expected]).values():
            raise SnapshotDamagedError(self.resource.name, reason)

    def verify_restorable(self, snapshot) -> None:
        self.store.verify_restorable(self.resource, snapshot.ref, snapshot.state_hash)

    def look(self) -> tuple[int, bytes] | str | None:
        if self.path.is_symlink():
            return str(self.path.readlink())
        if not self.path.exists():
            return None
        return stat.S_IMODE(self.path.stat().st_mode), self.path.read_bytes()

    @property
    def base(self) -> Path:
        return self.top / "snapshots" / f"{PLAN}.{FILE}.base"


@pytest.fixture
def database(tmp_path: Path) -> Generator[Database]:
    made = Database(tmp_path / "d")
    yield made
    made.workers.close()
