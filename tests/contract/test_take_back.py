"""What was carried out in a folder or a database is taken back, but for what is the user's now."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from fs_world import FolderWorld, inodes, tree
from sqlite_world import World as DatabaseWorld

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.infrastructure.sandbox.sqlite import apply as sqlite_apply
from cleveragents.infrastructure.sandbox.sqlite import read as sqlite_read

BEGIN = (
    "echo one > one; echo two > two; mkdir -p gone/deep keep; echo x > gone/deep/x; chmod 700 gone;"
    "ln -s one link; echo m > mode; echo f > swap; mkdir swap2; echo y > swap2/y"
)
WORK = (
    "echo plan > one; rm -r gone; mkdir new; echo n > new/n; rm link; ln -s two link;"
    "chmod 755 mode; rm swap; mkdir swap; echo s > swap/s; rm -r swap2; echo t > swap2"
)


@pytest.fixture
def folder(tmp_path: Path) -> FolderWorld:
    made = FolderWorld(tmp_path / "w")
    made.in_project(BEGIN)
    made.begin()
    made.work(WORK)
    return made


def test_a_folder_is_as_it_was_with_the_users_very_files(folder: FolderWorld) -> None:
    prepared = folder.prepare()
    before, kept = tree(folder.project), inodes(folder.project)
    folder.registry.carry_out(folder.resource, prepared)
    assert tree(folder.project) != before
    for _ in range(2):
        assert folder.registry.revert(folder.resource, prepared) == ()
    folder.registry.finish(folder.resource, prepared)
    assert (tree(folder.project), inodes(folder.project)) == (before, kept)
    folder.carry_out(prepared)
    assert tree(folder.project) == tree(folder.sandbox)


def test_what_the_user_changed_on_top_in_a_folder_stays_and_is_named(folder: FolderWorld) -> None:
    prepared = folder.prepare()
    before = tree(folder.project)
    folder.registry.carry_out(folder.resource, prepared)
    folder.in_project("echo mine > one; echo mine > new/mine; echo mine > mode")
    kept = folder.registry.revert(folder.resource, prepared)
    assert kept == ("mode", "new/mine", "one")
    folder.registry.finish(folder.resource, prepared)
    mine = {
        **{b"one": ("file", 0o644, b"mine\n"), b"mode": ("file", 0o755, b"mine\n")},
        **{b"new": ("folder", 0o755, b""), b"new/mine": ("file", 0o644, b"mine\n")},
    }
    assert tree(folder.project) == {**before, **mine}


def test_a_folder_that_is_gone_cannot_be_taken_back_yet(folder: FolderWorld) -> None:
    prepared = folder.prepare()
    folder.registry.carry_out(folder.resource, prepared)
    elsewhere = folder.project.rename(folder.root / "elsewhere")
    with pytest.raises(ApplyRefusedError, match="could not be put back"):
        folder.registry.revert(folder.resource, prepared)
    elsewhere.rename(folder.project)
    assert folder.registry.revert(folder.resource, prepared) == ()


# --- databases ----------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> DatabaseWorld:
    return DatabaseWorld(tmp_path)


@contextmanager
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    for module in (sqlite_apply, sqlite_read):
        monkeypatch.setattr(module, "BUSY_SECONDS", 0.2)
    yield


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_is_as_it_was(world: DatabaseWorld, journal: str) -> None:
    world.make(journal)
    resource = world.sandbox()
    world.sql("DELETE FROM users", "PRAGMA journal_mode=DELETE", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    dump = _dump(world)
    for _ in range(2):
        world.registry.carry_out(resource, prepared)
        assert world.users() == []
        for _ in range(2):
            assert world.registry.revert(resource, prepared) == ()
        assert _dump(world) == dump
        assert world.sql("PRAGMA journal_mode") == [(journal,)]
    world.registry.finish(resource, prepared)
    world.apply(resource)
    assert world.users() == []


def test_a_database_that_was_empty_is_an_empty_file_again(world: DatabaseWorld) -> None:
    world.path.touch()
    resource = world.sandbox()
    world.sql("CREATE TABLE t (a)", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    world.registry.carry_out(resource, prepared)
    assert world.registry.revert(resource, prepared) == ()
    assert world.path.read_bytes() == b""


def test_what_the_user_wrote_on_top_in_a_database_stays(world: DatabaseWorld) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("CREATE TABLE more (a)", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    world.registry.carry_out(resource, prepared)
    world.sql("INSERT INTO users (name) VALUES ('dan')")
    assert world.registry.revert(resource, prepared) == (resource.location,)
    assert world.users() == ["ann", "bob", "cy", "dan"]


def test_a_database_that_nothing_was_written_to_needs_nothing(world: DatabaseWorld) -> None:
    world.make()
    resource = world.sandbox()
    nothing = world.prepare(resource)
    assert world.registry.revert(resource, nothing) == ()
    world.sql("CREATE TABLE more (a)", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    world.sql("INSERT INTO users (name) VALUES ('dan')")
    assert world.registry.revert(resource, prepared) == ()
    assert world.users() == ["ann", "bob", "cy", "dan"]
    world.path.unlink()
    assert world.registry.revert(resource, prepared) == ()


def test_another_page_size_is_taken_back_too(world: DatabaseWorld) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("PRAGMA page_size=1024", "VACUUM", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    dump = _dump(world)
    world.registry.carry_out(resource, prepared)
    world.registry.revert(resource, prepared)
    assert _dump(world) == dump
    assert world.sql("PRAGMA page_size") == [(4096,)]


def test_a_locked_database_is_taken_back_later(
    world: DatabaseWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.make()
    resource = world.sandbox()
    world.sql("DELETE FROM users", path=Path(resource.sandbox_path))
    prepared = world.prepare(resource)
    world.registry.carry_out(resource, prepared)
    with nobody_waits(monkeypatch), closing(sqlite3.connect(world.path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ApplyRefusedError, match="locked"):
            world.registry.revert(resource, prepared)
    assert world.registry.revert(resource, prepared) == ()
    assert world.users() == ["ann", "bob", "cy"]


def _dump(world: DatabaseWorld) -> list[str]:
    with closing(sqlite3.connect(world.path)) as db:
        return list(db.iterdump())
