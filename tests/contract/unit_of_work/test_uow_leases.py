"""Leases: what an owner that was overtaken writes is refused, whatever it writes (ADR 0076)."""

import inspect
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.leases import EveryLease
from uow_calls import GRANDCHILD, MAKES, READS, SPAWNED, WRITES, Call
from uow_values import (
    BARE_PLAN,
    FULL_PLAN,
    OTHER_PLAN,
    PLAN,
    fill,
    ulid,
)

from cleveragents.domain.actor_protocol import Message
from cleveragents.domain.errors import PlanOvertakenError
from cleveragents.domain.ids import (
    PlanId,
)
from cleveragents.domain.lease import PlanNotHeldError
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWork, SqlUnitOfWorkFactory


class Owner:
    """One process that works on plans of the file."""

    def __init__(self, path: Path) -> None:
        self.leases = HeldLeases()
        self.database = Database(str(path))
        self.factory = SqlUnitOfWorkFactory(self.database, self.leases)

    def write(self, call: Call) -> None:
        with self.factory() as uow:
            call(uow)
            uow.commit()

    @contextmanager
    def holding(self, plan_id: PlanId) -> Generator[None]:
        """As a command does: the lock, then a look at the plan."""
        with self.leases.held(plan_id):
            with self.factory.reading() as uow:
                uow.plans.get(plan_id)
            yield


@pytest.fixture
def filled(path: Path) -> Path:
    """With a plan that has every kind of row, one child and one grandchild."""
    factory = SqlUnitOfWorkFactory(Database(str(path)), EveryLease())
    fill(factory)
    with factory() as uow:
        uow.plans.add(replace(BARE_PLAN, plan_id=OTHER_PLAN))
        uow.plans.add(replace(BARE_PLAN, plan_id=GRANDCHILD))
        uow.subplans.add(SPAWNED)
        uow.messages.add(PLAN, [Message(key="a", parent=None, body="")])
        uow.commit()
    return path


@pytest.fixture
def owner(filled: Path) -> Owner:
    return Owner(filled)


@pytest.fixture
def another(filled: Path) -> Owner:
    return Owner(filled)


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def epoch(path: Path, plan_id: PlanId = PLAN) -> int:
    with closing(sqlite3.connect(path)) as connection:
        asked = connection.execute("SELECT lease_epoch FROM plans WHERE plan_id = ?", (plan_id,))
        return asked.fetchone()[0]


def test_every_method_of_every_repository_is_in_one_of_the_lists_below(owner: Owner) -> None:
    found: set[str] = set()
    with owner.factory.reading() as uow:
        for name in (name for name in dir(uow) if not name.startswith("_")):
            if not inspect.ismethod(repository := getattr(uow, name)):
                methods = inspect.getmembers(type(repository), inspect.isfunction)
                found |= {f"{name}.{key}" for key, _ in methods if not key.startswith("_")}
    assert found == {*WRITES, *READS, *MAKES}
    assert not WRITES.keys() & READS.keys()


@pytest.mark.parametrize("name", WRITES)
def test_whoever_holds_the_plan_can_write_it(owner: Owner, filled: Path, name: str) -> None:
    with owner.holding(PLAN):
        before = dump(filled)
        owner.write(WRITES[name])
        assert dump(filled) != before


@pytest.mark.parametrize("name", WRITES)
def test_whoever_was_overtaken_can_write_nothing(
    owner: Owner, another: Owner, filled: Path, name: str
) -> None:
    with owner.holding(PLAN):
        owner.write(WRITES["plans.save"])
        with another.holding(PLAN):
            before = dump(filled)
            with pytest.raises(PlanOvertakenError):
                owner.write(WRITES[name])
            assert dump(filled) == before
            another.write(WRITES["plans.save"])


@pytest.mark.parametrize("name", WRITES)
def test_what_nobody_holds_is_not_written_either(owner: Owner, filled: Path, name: str) -> None:
    before = dump(filled)
    with pytest.raises(PlanNotHeldError):
        owner.write(WRITES[name])
    assert dump(filled) == before


@pytest.mark.parametrize("name", READS)
def test_what_only_reads_writes_nothing(owner: Owner, name: str) -> None:
    def refuse(action: int, *_: object) -> int:
        writes = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
        return sqlite3.SQLITE_DENY if action in writes else sqlite3.SQLITE_OK

    with owner.holding(PLAN):
        owner.database.connection().set_authorizer(refuse)
        with owner.factory.reading() as uow:
            READS[name](uow)


# --- when it rises ------------------------------------------------------------------------------


def test_the_first_transaction_under_a_lock_raises_the_epoch_and_no_other_does(
    owner: Owner, filled: Path
) -> None:
    with owner.leases.held(PLAN):
        assert epoch(filled) == 0
        with owner.factory.reading() as uow:
            assert uow.plans.get(PLAN) == FULL_PLAN
        assert epoch(filled) == 1
        owner.write(WRITES["plans.save"])
        with owner.factory.reading():
            pass
        assert epoch(filled) == 1
    with owner.factory.reading():
        pass
    assert epoch(filled) == 1
    with owner.leases.held(PLAN):
        owner.write(WRITES["plans.save"])
        assert epoch(filled) == 2
    assert epoch(filled, OTHER_PLAN) == 0


def test_raising_it_takes_no_transaction_of_its_own(owner: Owner) -> None:
    statements: list[str] = []
    owner.database.connection().set_trace_callback(statements.append)
    with owner.leases.held(PLAN):
        with owner.factory.reading() as uow:
            uow.plans.get(PLAN)
        owner.write(WRITES["plans.save"])
    begun = [text for text in statements if text.startswith("BEGIN IMMEDIATE")]
    assert len(begun) == 2


def test_what_was_read_under_a_lock_cannot_be_changed_by_whoever_had_it_before(
    owner: Owner, another: Owner
) -> None:
    """The order that matters: overtaken, then read, then the old owner comes back."""
    with owner.holding(PLAN), another.leases.held(PLAN):
        with another.factory.reading() as uow:
            plan = uow.plans.get(PLAN)
        with pytest.raises(PlanOvertakenError):
            owner.write(WRITES["plans.save"])
        with another.factory.reading() as uow:
            assert uow.plans.get(PLAN) == plan


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_it_stays_raised_when_the_rest_of_the_transaction_is_undone(
    owner: Owner, another: Owner, filled: Path, error: type[BaseException] | None
) -> None:
    with owner.holding(PLAN), another.leases.held(PLAN):
        before = epoch(filled)
        with suppress(ValueError, KeyboardInterrupt), another.factory() as uow:
            uow.plans.save(replace(FULL_PLAN, attempt=98))
            if error is not None:
                raise error
        assert epoch(filled) == before + 1
        with another.factory.reading() as uow:
            assert uow.plans.get(PLAN) == FULL_PLAN
        with pytest.raises(PlanOvertakenError):
            owner.write(WRITES["plans.save"])


def test_what_follows_a_commit_is_checked_again(owner: Owner, another: Owner) -> None:
    with owner.holding(PLAN), owner.factory() as uow:
        uow.plans.save(FULL_PLAN)
        uow.commit()
        with another.holding(PLAN):
            pass
        with pytest.raises(PlanOvertakenError):
            uow.plans.save(FULL_PLAN)


def test_after_letting_go_nothing_is_written(owner: Owner) -> None:
    with owner.holding(PLAN):
        owner.write(WRITES["plans.save"])
    with pytest.raises(PlanNotHeldError):
        owner.write(WRITES["plans.save"])


def test_another_thread_of_the_process_writes_what_the_process_holds(owner: Owner) -> None:
    problems: list[BaseException] = []

    def write() -> None:
        try:
            owner.write(WRITES["plans.save"])
        except BaseException as error:  # noqa: BLE001 - it is asserted on below
            problems.append(error)

    with owner.leases.held(PLAN):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        owner.write(WRITES["plans.save"])
    assert problems == []


def test_a_lock_for_a_plan_that_is_not_there_keeps_nobody_from_the_others(owner: Owner) -> None:
    with owner.leases.held(PlanId(ulid(9))), owner.holding(PLAN):
        owner.write(WRITES["plans.save"])


# --- families -----------------------------------------------------------------------------------


def save_child(uow: SqlUnitOfWork) -> None:
    uow.plans.save(replace(BARE_PLAN, plan_id=OTHER_PLAN, attempt=5))


def test_whoever_holds_a_plan_writes_its_children_too(owner: Owner) -> None:
    with owner.holding(PLAN):
        owner.write(save_child)


def test_whoever_holds_a_child_does_not_write_its_parent(owner: Owner) -> None:
    with owner.holding(OTHER_PLAN):
        owner.write(save_child)
        with pytest.raises(PlanNotHeldError):
            owner.write(WRITES["plans.save"])


def test_a_child_that_we_hold_is_lost_with_its_parent(owner: Owner, another: Owner) -> None:
    with owner.holding(PLAN), owner.holding(OTHER_PLAN):
        owner.write(save_child)
        with another.holding(PLAN), pytest.raises(PlanOvertakenError):
            owner.write(save_child)


def test_a_child_that_was_overtaken_alone_is_lost_alone(owner: Owner, another: Owner) -> None:
    with owner.holding(PLAN), owner.holding(OTHER_PLAN), another.holding(OTHER_PLAN):
        with pytest.raises(PlanOvertakenError):
            owner.write(save_child)
        owner.write(WRITES["plans.save"])
