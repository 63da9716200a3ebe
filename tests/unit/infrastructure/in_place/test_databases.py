"""A user's own database: what is read of it, and what a way back replaces."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.in_place_databases import Server, make, notes, write
from tests.support.runners import adapters_in

from cleveragents.domain.errors import DatabaseInUseError, RestoreFailedError
from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.in_place import Sparing
from cleveragents.domain.resource import PlanResource, Rebuilding
from cleveragents.domain.resource_kinds import SQLITE
from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.sandbox.in_place.databases import engine as engines
from cleveragents.infrastructure.sandbox.in_place.databases.adapter import InPlaceDatabaseAdapter
from cleveragents.infrastructure.sandbox.in_place.databases.engine import InPlacePages, SparedWay
from cleveragents.infrastructure.sandbox.in_place.databases.file import UsersDatabase
from cleveragents.infrastructure.snapshots.pages.history import FileState


class Own:
    """A database where it is, and the engine of its snapshots."""

    def __init__(self, top: Path, *, wal: bool = False) -> None:
        self.db = make(top / "app.db", wal=wal)
        self.resource = PlanResource(
            resource_id=ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAW"),
            plan_id=PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            name="db",
            type=SQLITE.type,
            location=str(self.db),
            base="",
            sandbox_path=str(self.db),
            in_place=True,
        )
        adapter = adapters_in(top / "data").of(self.resource)
        assert isinstance(adapter, InPlaceDatabaseAdapter)
        self.adapter = adapter

    @property
    def engine(self) -> InPlacePages:
        return self.adapter.snapshots

    def capture(self) -> str:
        return self.engine.capture(self.resource).ref

    def back_to(self, ref: str, held: str | None = None, last: str | None = None):
        sparing = Sparing(held=held or self.capture(), last=last, keep=last is not None)
        return self.engine.restore_sparing(self.resource, ref, sparing)


@pytest.fixture
def own(tmp_path: Path) -> Own:
    return Own(tmp_path)


@pytest.fixture
def logged(tmp_path: Path) -> Own:
    return Own(tmp_path, wal=True)


# --- the rule -----------------------------------------------------------------------------------


def test_only_what_the_safety_group_has_is_replaced() -> None:
    held = FileState(kind=Kind.FILE, mode=0o644, size=1, total=1)
    target = FileState(kind=Kind.FILE, mode=0o600, size=2, total=2)
    other = FileState(kind=Kind.FILE, mode=0o644, size=1, total=3)
    way = SparedWay(target=target, held=held)

    assert not way.spares(held)
    assert way.spares(other)
    assert way.spares(FileState())
    # A kill may have left the new mode with the old content; nobody else's mode counts so.
    assert not way.spares(FileState(kind=Kind.FILE, mode=0o600, size=1, total=1))
    assert way.spares(FileState(kind=Kind.FILE, mode=0o640, size=1, total=1))


def test_with_keep_what_moved_since_the_last_group_stays() -> None:
    last = FileState(kind=Kind.FILE, size=1, total=1)
    held = FileState(kind=Kind.FILE, size=1, total=2)

    assert SparedWay(target=last, held=held, last=last, keep=True).spares(held)
    assert not SparedWay(target=last, held=held, last=last).spares(held)
    assert not SparedWay(target=last, held=held, last=held, keep=True).spares(held)


def test_what_somebody_writes_after_the_safety_group_is_left_and_named(own: Own) -> None:
    first = own.capture()
    write(own.db, "bread")
    held = own.capture()
    write(own.db, "since")

    done = own.back_to(first, held=held)

    assert done.left == ("app.db",)
    assert done.changes == ()
    assert notes(own.db) == ["milk", "bread", "since"]


def test_what_somebody_writes_until_the_lock_is_left_too(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = own.capture()
    write(own.db, "bread")
    held = own.capture()
    taken = UsersDatabase.can_be_written

    def late(self: UsersDatabase, found: object) -> bool:
        write(own.db, "in between")
        return taken(self, found)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(UsersDatabase, "can_be_written", late)
    done = own.back_to(first, held=held)

    assert done.left == ("app.db",)
    assert notes(own.db)[:3] == ["milk", "bread", "in between"]


def test_there_is_no_other_way_in(own: Own) -> None:
    ref = own.capture()
    ways: list[Callable[[], object]] = [
        lambda: own.engine.restore(own.resource, ref),
        lambda: own.engine.restore_paths(own.resource, ref, ["app.db"]),
        lambda: own.engine.rebuild(own.resource, Rebuilding(snapshot=ref)),
    ]
    for way in ways:
        with pytest.raises(RestoreFailedError):
            way()


# --- reading ------------------------------------------------------------------------------------


def test_what_a_log_holds_is_captured_and_its_fold_is_no_change(logged: Own) -> None:
    first = logged.capture()
    with Server(logged.db) as server:
        server("INSERT INTO note (text) VALUES ('bread')")
        second = logged.capture()
        assert second != first
        assert logged.capture() == second
        assert logged.engine.compare(logged.resource, second) == ()
        assert len(logged.engine.compare(logged.resource, first)) == 1
    # Its last connection has folded the log.
    assert not logged.db.with_name("app.db-wal").exists()
    assert logged.capture() == second


def test_a_log_in_use_is_captured_consistently_while_somebody_writes(logged: Own) -> None:
    with closing(sqlite3.connect(logged.db)) as db, db:
        db.execute("CREATE TABLE pair (id INTEGER PRIMARY KEY, one, two)")
        db.executemany("INSERT INTO pair (one, two) VALUES (0, ?)", [("x" * 3000,)] * 200)
    with Server(logged.db) as server:
        server("PRAGMA wal_autocheckpoint=20")
        for number in range(12):
            server(f"UPDATE pair SET one = {number}")
            ref = logged.capture()
            with (
                logged.engine.copy_of(
                    logged.resource, ref, str(logged.db.with_name("seen.db"))
                ) as path,
                closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as seen,
            ):
                assert seen.execute("SELECT DISTINCT one FROM pair").fetchall() == [(number,)]


def test_what_sqlite_makes_nothing_of_is_bytes(own: Own) -> None:
    first = own.capture()
    own.db.write_bytes(b"junk" * 1000)
    own.db.with_name("app.db-journal").write_bytes(b"x" * 600)

    junk = own.engine.capture(own.resource)

    assert junk.ref != first
    assert "without its journals" in "".join(junk.notes) or own.db.read_bytes() == b"junk" * 1000


# --- writing ------------------------------------------------------------------------------------


def test_a_connection_that_opens_it_just_before_the_lock_is_seen(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = own.capture()
    write(own.db, "bread")
    held = own.capture()
    with Server(own.db) as server:
        server("SELECT * FROM note")
        monkeypatch.setattr(
            "cleveragents.infrastructure.sandbox.in_place.databases.file.refuse_in_use",
            lambda _path: None,
        )
        with pytest.raises(DatabaseInUseError, match=str(server.pid)):
            own.back_to(first, held=held)
    assert notes(own.db) == ["milk", "bread"]


def test_one_that_cannot_be_written_whole_is_what_it_was(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = own.capture()
    write(own.db, "bread")
    held, before = own.capture(), own.db.read_bytes()

    def failing(*_: object) -> object:
        own.db.with_name("app.db-journal").read_bytes()  # the old pages are safe by now
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cleveragents.infrastructure.snapshots.pages.restore._prove", failing)
    with pytest.raises(RestoreFailedError, match="No space left"):
        own.back_to(first, held=held)

    assert own.db.read_bytes() == before
    assert not own.db.with_name("app.db-journal").exists()


def test_looking_whether_it_is_in_use_changes_nothing(own: Own) -> None:
    first = own.capture()
    write(own.db, "bread")
    second = own.capture()
    with Server(own.db) as server:
        server("SELECT * FROM note")
        refuse = own.engine.refuse_in_use
        with pytest.raises(DatabaseInUseError):
            refuse(own.resource, first, second, keep=False)
        refuse(own.resource, second, second, keep=False)
        server("INSERT INTO note (text) VALUES ('tea')")
        refuse(own.resource, first, second, keep=True)
    assert engines.readers_of(str(own.db)) == ()
