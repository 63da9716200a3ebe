"""All rows of a plan can be removed at once, and none of any other."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.leases import EveryLease
from uow_values import BARE_PLAN, CHILD, OTHER_PLAN, PLAN, fill, ulid

from cleveragents.domain.decision import Position
from cleveragents.domain.errors import PlanOvertakenError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.lease import PlanNotHeldError
from cleveragents.domain.subplan import ChildPlan
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.database.plan_records import SqlPlanRecords
from cleveragents.infrastructure.database.unit_of_work import SqlUnitOfWorkFactory

BELOW = PlanId(ulid(7))


@pytest.fixture
def filled(path: Path) -> Path:
    """A plan that has every kind of row, one with a child below it, and one of its own."""
    factory = SqlUnitOfWorkFactory(Database(str(path)), EveryLease())
    with factory() as uow:  # first, so that what is dumped of it comes before and after
        uow.plans.add(replace(BARE_PLAN, plan_id=OTHER_PLAN))
        uow.commit()
    alone = dump(path)
    fill(factory)
    with factory() as uow:
        uow.plans.add(replace(BARE_PLAN, plan_id=BELOW))
        uow.subplans.add(
            ChildPlan(
                plan_id=BELOW,
                parent_id=PLAN,
                root_id=PLAN,
                decision_id=CHILD,
                name="part",
                index=0,
                position=Position(timeline=2, seq=20),
            )
        )
        uow.commit()
    assert dump(path) != alone
    path.with_name("alone").write_text("\n".join(alone))
    return path


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return [line for line in connection.iterdump() if "sqlite_stat" not in line]


def test_every_row_of_the_plan_and_of_its_children_goes_and_nothing_else(filled: Path) -> None:
    leases = HeldLeases()
    with leases.held(PLAN):
        SqlPlanRecords(Database(str(filled)), leases).remove(PLAN)
    assert "\n".join(dump(filled)) == filled.with_name("alone").read_text()


def test_foreign_keys_are_looked_at_again_afterwards(filled: Path) -> None:
    leases, database = HeldLeases(), Database(str(filled))
    with leases.held(PLAN):
        SqlPlanRecords(database, leases).remove(PLAN)
    assert database.connection().execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_without_the_lock_nothing_goes(filled: Path) -> None:
    before = dump(filled)
    with pytest.raises(PlanNotHeldError):
        SqlPlanRecords(Database(str(filled)), HeldLeases()).remove(PLAN)
    assert dump(filled) == before


def test_whoever_was_overtaken_removes_nothing(filled: Path) -> None:
    ours, theirs = HeldLeases(), HeldLeases()
    first = SqlUnitOfWorkFactory(Database(str(filled)), ours)
    with ours.held(PLAN):
        with first.reading() as uow:
            uow.plans.get(PLAN)
        with theirs.held(PLAN):
            with SqlUnitOfWorkFactory(Database(str(filled)), theirs).reading() as uow:
                uow.plans.get(PLAN)
            before = dump(filled)
            with pytest.raises(PlanOvertakenError):
                SqlPlanRecords(Database(str(filled)), ours).remove(PLAN)
            assert dump(filled) == before
