"""Who has a database open, as the kernel tells it."""

import os
from pathlib import Path

import pytest
from tests.support.in_place_databases import Server, make

from cleveragents.infrastructure.sqlite import in_use
from cleveragents.infrastructure.sqlite.in_use import Users, users_of


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return make(tmp_path / "app.db")


def test_nobody_uses_what_is_closed_or_no_file(db: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(db)

    for path in (db, tmp_path / "missing", tmp_path, tmp_path / "link"):
        assert users_of(str(path)) == Users()
        assert not users_of(str(path)).is_in_use


def test_who_is_idle_has_no_lock_and_is_seen(db: Path) -> None:
    with Server(db) as server:
        server("SELECT * FROM note")
        found = users_of(str(db))

    assert found.is_in_use
    assert found.is_written
    assert not found.is_locked
    assert found.named == found.writers
    assert found.named[0].startswith(f"{server.pid} (")


def test_who_only_reads_is_no_hindrance_without_a_lock(db: Path) -> None:
    with Server(db, read_only=True) as server:
        server("SELECT * FROM note")
        found = users_of(str(db))
        assert not found.is_in_use
        assert found.readers[0].startswith(f"{server.pid} (")
        server("BEGIN")
        server("SELECT * FROM note")
        assert users_of(str(db)).is_locked
        assert users_of(str(db)).named == found.readers


def test_who_has_a_log_open_has_a_lock(tmp_path: Path) -> None:
    db = make(tmp_path / "app.db", wal=True)
    with Server(db, read_only=True) as server:
        server("SELECT * FROM note")
        found = users_of(str(db))

    assert found.is_locked
    assert found.is_in_use


def test_where_nothing_can_be_seen_the_kernel_knows(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_use, "_others", lambda: iter(()))
    with Server(db) as server:
        server("SELECT * FROM note")
        found = users_of(str(db))

    assert found.is_in_use
    assert found.named == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_one_that_is_closed_to_its_owner_is_told_by_processes_alone(db: Path) -> None:
    db.chmod(0)
    assert users_of(str(db)) == Users()
