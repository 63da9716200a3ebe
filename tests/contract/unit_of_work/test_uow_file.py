"""The unit of work: the file is private and durable, and a bad one is told and left alone."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.leases import EveryLease
from uow_values import FULL_CALL, FULL_FORK, FULL_GROUP, FULL_RESOURCE, PLAN, ROOT_DECISION, fill

from cleveragents.application.ports.runtime import UnitOfWork
from cleveragents.domain.errors import (
    DatabaseTooNewError,
    DatabaseTooOldError,
    DatabaseUnusableError,
    DataDirError,
)
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.schema import FORMAT
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory


def pragma(database: Database, name: str) -> Any:
    return database.connection().execute(f"PRAGMA {name}").fetchone()[0]


def test_durability_and_foreign_keys_are_really_on(path: Path) -> None:
    database = Database(str(path))

    assert pragma(database, "journal_mode") == "wal"
    assert pragma(database, "synchronous") == 2
    assert pragma(database, "foreign_keys") == 1


ORPHANS: list[Callable[[UnitOfWork], None]] = [
    lambda uow: uow.resources.add(FULL_RESOURCE),
    lambda uow: uow.decisions.add(ROOT_DECISION),
    lambda uow: uow.tool_calls.add(FULL_CALL),
    lambda uow: uow.checkpoints.add(FULL_GROUP),
    lambda uow: uow.timelines.add(PLAN, FULL_FORK),
]


@pytest.mark.parametrize("add", ORPHANS)
def test_nothing_can_be_stored_without_what_it_belongs_to(
    database: SqlUnitOfWorkFactory, add: Callable[[UnitOfWork], None]
) -> None:
    with pytest.raises(DatabaseUnusableError, match="FOREIGN KEY"), database() as uow:
        add(uow)


def test_a_new_database_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "c.db"

    fill(SqlUnitOfWorkFactory(Database(str(path)), EveryLease()))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"this is not a database " * 300, os.urandom(5000)])
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(content)

    with pytest.raises(DatabaseUnusableError) as caught:
        Database(str(path)).connection()

    assert str(path) in caught.value.message
    assert path.read_bytes() == content


def test_an_empty_file_is_a_database_that_has_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    path.touch()
    database = SqlUnitOfWorkFactory(Database(str(path)), EveryLease())

    fill(database)

    with database.reading() as uow:
        assert uow.plans.get(PLAN).plan_id == PLAN


def test_a_damaged_database_is_told_as_such(
    database: SqlUnitOfWorkFactory, path: Path, other: sqlite3.Connection
) -> None:
    fill(database)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    new_process = SqlUnitOfWorkFactory(Database(str(path)), EveryLease())
    with pytest.raises(DatabaseUnusableError) as caught, new_process.reading() as uow:
        uow.plans.list()
    assert str(path) in caught.value.message


def test_text_that_was_damaged_is_told_as_such(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    fill(database)
    other.execute("UPDATE plans SET applied_json = CAST(X'FF' AS TEXT)")

    with pytest.raises(DatabaseUnusableError), database.reading() as uow:
        uow.plans.get(PLAN)


def test_a_database_of_a_newer_version_is_refused_and_left_alone(
    path: Path, other: sqlite3.Connection
) -> None:
    other.execute("PRAGMA user_version = 9999")
    before = list(other.iterdump())

    with pytest.raises(DatabaseTooNewError, match="9999"):
        Database(str(path)).connection()

    assert list(other.iterdump()) == before


@pytest.mark.parametrize("table", ["alembic_version", "somebody_elses"])
def test_a_database_with_tables_of_another_time_is_refused_and_left_alone(
    tmp_path: Path, table: str
) -> None:
    path = tmp_path / "c.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE {table} (version_num TEXT)")
    before = path.read_bytes()

    with pytest.raises(DatabaseTooOldError, match=str(path)):
        Database(str(path)).connection()

    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["c.db"]


def test_a_folder_that_cannot_be_made_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataDirError) as caught:
        Database(str(tmp_path / "file" / "c.db")).connection()
    assert str(tmp_path / "file") in caught.value.message


def test_a_folder_where_the_database_should_be_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "c.db").mkdir()

    with pytest.raises(DatabaseUnusableError):
        Database(str(tmp_path / "c.db")).connection()


FIRST_COMMAND = """
import sys
from cleveragents.infrastructure.database.engine import Database
print("ready", flush=True)
sys.stdin.readline()
connection = Database(sys.argv[1]).connection()
connection.execute("BEGIN IMMEDIATE")
columns = len(connection.execute("SELECT * FROM plans").description)
marks = ",".join("?" * columns)
connection.execute(f"INSERT INTO plans VALUES ({marks})", [sys.argv[2]] * columns)
connection.execute("COMMIT")
"""


def test_two_processes_that_begin_at_once_both_find_the_database_made(tmp_path: Path) -> None:
    path = tmp_path / "data" / "c.db"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FIRST_COMMAND, str(path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [(*process.communicate(timeout=60), process.returncode) for process in processes]

    assert ended == [("", "", 0)] * 2
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM plans").fetchone() == (2,)
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)
