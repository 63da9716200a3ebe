"""The databases that the unit of work is tried on: a real one and the fake of the services."""

import sqlite3
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.leases import EveryLease

from cleveragents.application.ports.runtime import UnitOfWorkFactory
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory

# The fakes that the services are tested over must keep the same promises.
sys.path.append(str(Path(__file__).parents[2] / "unit" / "application"))
from fake_database import MemoryDatabase  # pyright: ignore[reportMissingImports]
from fakes import Faults  # pyright: ignore[reportMissingImports]


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new database, made once; the tests work on copies."""
    path = tmp_path_factory.mktemp("migrated") / "c.db"
    with SqlUnitOfWorkFactory(Database(str(path)), EveryLease()).reading():
        pass
    return path


@pytest.fixture
def path(tmp_path: Path, migrated: Path) -> Path:
    copied = tmp_path / "c.db"
    with closing(sqlite3.connect(migrated)) as old, closing(sqlite3.connect(copied)) as new:
        old.backup(new)
    return copied


@pytest.fixture
def database(path: Path) -> SqlUnitOfWorkFactory:
    return SqlUnitOfWorkFactory(Database(str(path)), EveryLease())


@pytest.fixture(params=["sqlite", "memory"])
def factory(request: pytest.FixtureRequest) -> UnitOfWorkFactory:
    if request.param == "memory":
        return MemoryDatabase(Faults())
    return request.getfixturevalue("database")


@pytest.fixture
def other(path: Path) -> Generator[sqlite3.Connection]:
    """Another process, as far as the database can tell."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0.05)) as connection:
        yield connection
