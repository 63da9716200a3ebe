"""The unit of work: only a commit keeps anything, and readers never wait for a writer."""

import sqlite3
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.leases import EveryLease
from uow_values import (
    BARE_PLAN,
    CHILD,
    FULL_FORK,
    FULL_GROUP,
    FULL_PLAN,
    OTHER_PLAN,
    PLAN,
    WHEN,
    fill,
)

from cleveragents.application.ports.runtime import UnitOfWorkFactory
from cleveragents.domain.errors import DatabaseBusyError, DatabaseUnusableError
from cleveragents.infrastructure.database import engine
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory


def test_leaving_without_a_commit_undoes_everything(factory: UnitOfWorkFactory) -> None:
    fill(factory)
    with factory() as uow:
        uow.plans.save(replace(BARE_PLAN, attempt=99))
        uow.plans.add(replace(BARE_PLAN, plan_id=OTHER_PLAN))
        uow.checkpoints.delete(PLAN, {FULL_GROUP.group_id: "too old"}, WHEN)

    with factory.reading() as uow:
        assert list(uow.plans.list()) == [FULL_PLAN]
        assert list(uow.checkpoints.of_plan(PLAN)) == [FULL_GROUP]


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, KilledError])
def test_leaving_by_an_error_undoes_everything_and_the_next_one_works(
    factory: UnitOfWorkFactory, error: type[BaseException]
) -> None:
    with pytest.raises(error), factory() as uow:
        uow.plans.add(BARE_PLAN)
        raise error

    fill(factory)
    with factory.reading() as uow:
        assert uow.plans.get(PLAN) == FULL_PLAN


class _Interrupted:
    """A connection with which Ctrl-C comes the moment a transaction has begun."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self._real = real

    def execute(self, sql: str) -> None:
        self._real.execute(sql)
        if sql.startswith("BEGIN"):
            raise KeyboardInterrupt

    @property
    def in_transaction(self) -> bool:
        return self._real.in_transaction


@pytest.mark.parametrize("kind", ["reading", "writing"])
def test_ctrl_c_right_after_the_beginning_leaves_nothing_open(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Database(str(path))
    factory = SqlUnitOfWorkFactory(file, EveryLease())
    real = file.connection()
    begin = factory.reading if kind == "reading" else factory
    with monkeypatch.context() as patch:
        patch.setattr(file, "connection", lambda: _Interrupted(real))
        with pytest.raises(KeyboardInterrupt), begin():
            pass

    fill(factory)
    with factory.reading() as uow:
        assert uow.plans.get(PLAN) == FULL_PLAN


def test_a_statement_that_fails_takes_the_ones_before_it_along(
    database: SqlUnitOfWorkFactory,
) -> None:
    with pytest.raises(DatabaseUnusableError), database() as uow:
        uow.plans.add(BARE_PLAN)
        uow.plans.add(BARE_PLAN)

    with database.reading() as uow:
        assert list(uow.plans.list()) == []


def test_what_one_process_commits_another_one_finds(
    database: SqlUnitOfWorkFactory, path: Path
) -> None:
    fill(database)

    with SqlUnitOfWorkFactory(Database(str(path)), EveryLease()).reading() as uow:
        assert uow.plans.get(PLAN) == FULL_PLAN


def test_what_is_written_after_the_commit_is_not_kept(database: SqlUnitOfWorkFactory) -> None:
    try:
        with database() as uow:
            uow.plans.add(BARE_PLAN)
            uow.commit()
            uow.plans.save(FULL_PLAN)
    except sqlite3.Error:
        pass

    with database.reading() as uow:
        assert uow.plans.get(PLAN) == BARE_PLAN


def test_a_view_stays_the_same_while_others_write(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    fill(database)

    with database.reading() as uow:
        assert uow.plans.get(PLAN).attempt == 3
        other.execute("UPDATE plans SET attempt = 77")
        other.execute("UPDATE decisions SET attempt = 77")
        assert uow.plans.get(PLAN).attempt == 3
        assert uow.decisions.get(CHILD).attempt == 2

    with database.reading() as uow:
        assert uow.plans.get(PLAN).attempt == 77


def test_reading_never_waits_for_a_writer(
    path: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(SqlUnitOfWorkFactory(Database(str(path)), EveryLease()))
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE plans SET attempt = 77")
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.0)

    # A new process, which must get past opening the file as well.
    with SqlUnitOfWorkFactory(Database(str(path)), EveryLease()).reading() as uow:
        assert uow.plans.get(PLAN).attempt == 3


def test_whoever_reads_does_not_keep_a_writer_waiting(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    fill(database)

    with database.reading() as uow:
        uow.plans.get(PLAN)
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE plans SET attempt = 77")
        other.execute("COMMIT")
        assert uow.plans.get(PLAN).attempt != 77  # who reads has one moment before the eyes

    with database.reading() as uow:
        assert uow.plans.get(PLAN).attempt == 77


def test_a_writer_is_alone_from_its_first_line_on(
    database: SqlUnitOfWorkFactory, other: sqlite3.Connection
) -> None:
    with database(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE")


def test_a_database_in_use_is_told_as_such_after_the_waiting_time(
    path: Path, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)
    database = SqlUnitOfWorkFactory(Database(str(path)), EveryLease())
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(DatabaseBusyError) as caught, database():
        pass
    assert str(path) in caught.value.message

    other.execute("COMMIT")
    fill(database)


def test_threads_do_not_get_into_each_others_way(database: SqlUnitOfWorkFactory) -> None:
    fill(database)
    problems: list[BaseException] = []

    def add_timelines(first: int) -> None:
        try:
            for number in range(first, first + 20):
                with database() as uow:
                    uow.timelines.add(PLAN, replace(FULL_FORK, timeline=number))
                    uow.commit()
        except BaseException as error:  # noqa: BLE001 - it is asserted on below
            problems.append(error)

    threads = [threading.Thread(target=add_timelines, args=(first,)) for first in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    with database.reading() as uow:
        assert len(uow.timelines.of_plan(PLAN)) == 41
