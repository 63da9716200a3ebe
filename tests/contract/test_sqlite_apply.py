"""A SQLite result reaches the user's database whole or not at all, whoever else uses it."""

import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlite_world import JOURNALS, World, elsewhere, world

from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError, ProjectMissingError
from cleveragents.infrastructure.sandbox.sqlite import apply as sqlite_apply
from cleveragents.infrastructure.sandbox.sqlite import read as sqlite_read

__all__ = ["world"]


@pytest.mark.parametrize("journal", JOURNALS)
def test_the_result_reaches_the_database_and_can_be_carried_out_again(
    world: World, journal: str
) -> None:
    world.make(journal)
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("DELETE FROM users WHERE id=2", "CREATE TABLE more (a)", path=path)
    before = world.everything()
    prepared = world.prepare(resource)
    assert world.everything() == before
    ref = world.registry.carry_out(resource, prepared)
    assert ref.startswith("sqlite:")
    assert world.users() == ["ann", "cy"]
    assert world.sql("PRAGMA journal_mode") == [(journal,)]
    assert [p.name for p in world.folder.iterdir()] == [world.path.name]
    after = world.everything()
    assert world.registry.carry_out(resource, prepared) == ref
    assert world.everything() == after
    world.registry.remove(resource)
    marked = replace(resource, intent=prepared.token)
    assert world.registry.applied_diff(marked, ref) == prepared.diff


def test_nothing_changed_means_nothing_is_written(world: World) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=1")
    before = world.everything()
    world.apply(resource)
    assert world.everything() == before


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_database_that_moved_on_is_a_conflict(world: World, journal: str) -> None:
    world.make(journal)
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    world.sql("UPDATE users SET name='mine' WHERE id=3")
    with pytest.raises(ApplyConflictError) as caught:
        world.prepare(resource)
    assert caught.value.files == (str(world.path),)
    with pytest.raises(ApplyConflictError):
        world.registry.carry_out(resource, prepared)
    assert world.users() == ["ann", "bob", "mine"]


def test_a_write_between_the_last_look_and_the_writing_is_a_conflict(
    world: World, monkeypatch
) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    opened = sqlite_apply.writing_target

    def write_first(path: str) -> sqlite3.Connection:
        world.sql("UPDATE users SET name='mine' WHERE id=3")
        return opened(path)

    monkeypatch.setattr(sqlite_apply, "writing_target", write_first)
    with pytest.raises(ApplyConflictError):
        world.registry.carry_out(resource, prepared)
    assert world.users() == ["ann", "bob", "mine"]
    assert world.sql("PRAGMA integrity_check") == [("ok",)]


def test_folding_the_log_or_another_journal_mode_is_no_conflict(world: World) -> None:
    world.make("wal")
    with elsewhere(world.path, "INSERT INTO users (name) VALUES ('dee')"):
        resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    world.sql("PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE")
    world.apply(resource)
    assert world.users() == ["ann", "cy", "dee"]
    assert world.sql("PRAGMA journal_mode") == [("delete",)]


def test_readers_with_the_database_open_see_the_old_state_and_then_the_new(world: World) -> None:
    world.make("wal")
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    with closing(sqlite3.connect(world.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        old = reader.execute("SELECT count(*) FROM users").fetchone()
        world.apply(resource)
        assert reader.execute("SELECT count(*) FROM users").fetchone() == old == (3,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM users").fetchone() == (2,)


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_locked_database_is_left_as_it_is(world: World, journal: str, monkeypatch) -> None:
    monkeypatch.setattr(sqlite_apply, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(sqlite_read, "BUSY_SECONDS", 0.2)
    world.make(journal)
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    with elsewhere(world.path, "BEGIN IMMEDIATE"), pytest.raises(ApplyRefusedError, match="locked"):
        world.registry.carry_out(resource, prepared)
    assert world.users() == ["ann", "bob", "cy"]
    world.registry.carry_out(resource, prepared)
    assert world.users() == ["ann", "cy"]


def test_only_a_healthy_database_is_applied(world: World) -> None:
    world.make()
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    path.write_bytes(b"garbage" * 1000)
    with pytest.raises(ApplyRefusedError, match="no healthy database"):
        world.prepare(resource)
    path.unlink()
    with pytest.raises(ApplyRefusedError, match="it is gone"):
        world.prepare(resource)
    assert world.users() == ["ann", "bob", "cy"]


def test_a_sandbox_changed_after_preparing_is_refused(world: World) -> None:
    world.make()
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("DELETE FROM users WHERE id=2", path=path)
    prepared = world.prepare(resource)
    world.sql("DELETE FROM users", path=path)
    with pytest.raises(ApplyRefusedError, match="after the apply was prepared"):
        world.registry.carry_out(resource, prepared)


def test_a_missing_original_is_refused(world: World) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("DELETE FROM users WHERE id=2", path=Path(resource.sandbox_path))
    world.path.unlink()
    with pytest.raises(ProjectMissingError):
        world.prepare(resource)


def test_other_page_sizes_and_shrinking_reach_the_database(world: World) -> None:
    world.make()
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 3000)"
    world.sql(f"{numbers} INSERT INTO users (name) SELECT hex(randomblob(50)) FROM n")
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("DELETE FROM users WHERE id>3", "PRAGMA page_size=1024", "VACUUM", path=path)
    world.apply(resource)
    assert world.users() == ["ann", "bob", "cy"]
    assert world.sql("PRAGMA page_size") == [(1024,)]
    assert world.path.stat().st_size == path.stat().st_size


def test_a_page_size_that_sqlite_cannot_change_is_refused_and_nothing_changes(world: World) -> None:
    world.make("wal")
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    statements = ("PRAGMA journal_mode=DELETE", "PRAGMA page_size=1024", "VACUUM")
    world.sql(*statements, path=path)
    before = world.users()
    with pytest.raises(ApplyRefusedError, match="was not changed"):
        world.apply(resource)
    assert world.users() == before
    assert world.sql("PRAGMA page_size") == [(4096,)]


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_result_of_a_single_page_reaches_the_database(world: World, journal: str) -> None:
    world.make(journal)
    resource = world.sandbox()
    world.sql("DROP TABLE users", "VACUUM", path=Path(resource.sandbox_path))
    world.apply(resource)
    assert world.sql("SELECT count(*) FROM sqlite_master") == [(0,)]
    assert world.path.stat().st_size == 4096


@pytest.mark.parametrize("journal", JOURNALS)
def test_an_apply_killed_anywhere_is_finished_by_the_next(world: World, journal: str) -> None:
    world.make(journal)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 20000)"
    world.sql(f"{numbers} INSERT INTO users (name) SELECT hex(randomblob(50)) FROM n")
    resource = world.sandbox()
    path = Path(resource.sandbox_path)
    world.sql("UPDATE users SET name=hex(randomblob(60))", path=path)
    prepared = world.prepare(resource)
    for delay in (0.0, 0.01, 0.03, 0.06, 0.1):
        world.snapshots.close()
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                world.registry.carry_out(resource, prepared)
            os._exit(0)
        time.sleep(delay)
        os.kill(child, 9)
        os.waitpid(child, 0)
        assert world.sql("PRAGMA quick_check") == [("ok",)]
    world.registry.carry_out(resource, prepared)
    assert world.users() == world.users(path)
