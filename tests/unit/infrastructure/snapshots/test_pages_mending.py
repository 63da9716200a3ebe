"""Pages that are damaged in the store, and are to go from the database, are stored anew first."""

import sqlite3
from contextlib import closing

import pytest
from pages_world import PLAN, Database, database

from cleveragents.domain.errors import SnapshotDamagedError

__all__ = ["database"]


def spoil_contents(database: Database) -> None:
    database.store.close()
    with closing(sqlite3.connect(database.top / "snapshots" / f"{PLAN}.db")) as db:
        assert db.execute("UPDATE contents SET data=x'00'").rowcount
        db.commit()


def test_a_stored_page_that_changes_back_is_stored_anew(database: Database) -> None:
    first = database.capture()
    database.sql("UPDATE t SET a='x' WHERE id=9")
    second, now = database.capture(), database.look()
    spoil_contents(database)
    with pytest.raises(SnapshotDamagedError):
        database.verify(second)
    assert " of app.db was damaged" in database.restore(first.ref).notes[0]
    database.verify(second)
    assert database.restore(second.ref).notes == ()
    assert database.look() == now


@pytest.mark.parametrize("damage", ["other bytes", "gone"])
def test_a_page_of_the_base_is_put_back_there(database: Database, damage: str) -> None:
    first, before = database.capture(), database.look()
    database.sql("UPDATE t SET a='x' WHERE id=9")
    second = database.capture()
    database.restore(first.ref)
    if damage == "gone":
        database.base.unlink()
    else:
        database.base.write_bytes(bytes(database.base.stat().st_size))
    assert " of app.db was damaged" in database.restore(second.ref).notes[0]
    assert database.restore(first.ref).notes == ()
    assert database.look() == before


def test_a_database_that_goes_is_kept_whole(database: Database) -> None:
    there, now = database.capture(), database.look()
    database.path.unlink()
    nothing = database.capture()
    database.restore(there.ref)
    database.base.write_bytes(bytes(database.base.stat().st_size))
    assert database.restore(nothing.ref).notes != ()
    assert database.look() is None
    database.verify(there)
    database.restore(there.ref)
    assert database.look() == now


def test_what_was_never_stored_is_no_damage(database: Database) -> None:
    first, before = database.capture(), database.look()
    database.sql("UPDATE t SET a='x' WHERE id=9")
    database.capture()
    spoil_contents(database)
    database.sql("UPDATE t SET a='y' WHERE id=9")
    assert database.restore(first.ref).notes == ()
    assert database.look() == before
