"""The name of a database: its own for good, and another one for each copy."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.installation import SqlInstallation


def name_of(path: Path) -> str:
    return SqlInstallation(Database(str(path))).name()


def test_it_stays_also_when_the_file_is_moved(tmp_path: Path) -> None:
    first, moved = tmp_path / "a.db", tmp_path / "b.db"
    name = name_of(first)
    assert name_of(first) == name
    with closing(sqlite3.connect(first)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    first.rename(moved)
    assert name_of(moved) == name


def test_a_copy_and_a_backup_get_names_of_their_own(tmp_path: Path) -> None:
    first, copy, backup = tmp_path / "a.db", tmp_path / "b.db", tmp_path / "c.db"
    name = name_of(first)
    with closing(sqlite3.connect(first)) as old, closing(sqlite3.connect(backup)) as new:
        old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        old.backup(new)
    shutil.copy2(first, copy)

    names = [name_of(path) for path in (first, copy, backup)]

    assert names[0] == name
    assert len(set(names)) == 3
    assert [name_of(path) for path in (first, copy, backup)] == names


def test_inside_a_transaction_it_is_found_too(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "a.db"))
    connection = database.connection()
    connection.execute("BEGIN IMMEDIATE")
    with database.writer:
        name = SqlInstallation(database).name()
    connection.execute("COMMIT")
    assert name_of(tmp_path / "a.db") == name
