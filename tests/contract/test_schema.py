"""The tables of the metadata database: made whole or not at all; references lead somewhere."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cleveragents.domain.errors import DatabaseUnusableError
from cleveragents.infrastructure.database import engine
from cleveragents.infrastructure.database.engine import Database
from cleveragents.infrastructure.database.schema import FORMAT, SCHEMA


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {name for (name,) in rows}


def test_every_statement_makes_a_table_or_an_index_of_one(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    Database(str(path)).connection()

    assert len(tables(path)) == SCHEMA.count("CREATE TABLE")
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT COUNT(*) FROM sqlite_schema WHERE sql IS NOT NULL")
        assert made.fetchone() == (SCHEMA.count("CREATE "),)
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)


def test_every_reference_leads_to_the_key_of_a_table(tmp_path: Path) -> None:
    """SQLite does not look before a row is written."""
    path = tmp_path / "c.db"
    Database(str(path)).connection()

    with closing(sqlite3.connect(path)) as connection:
        for table in tables(path):
            for key in connection.execute(f"PRAGMA foreign_key_list({table})").fetchall():
                columns = connection.execute(f"PRAGMA table_info({key[2]})").fetchall()
                assert key[4] in [column[1] for column in columns if column[5]], (table, key)


def test_deleting_a_group_cascades_in_the_database_itself(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    Database(str(path)).connection()

    with closing(sqlite3.connect(path)) as connection:
        for table in ("checkpoints", "checkpoint_resource_states"):
            keys = connection.execute(f"PRAGMA foreign_key_list({table})").fetchall()
            assert {key[3] for key in keys if key[6] == "CASCADE"} == {"group_id"}


def test_opening_it_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    Database(str(path)).connection()
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())

    Database(str(path)).connection()

    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


KILLED_AT_STATEMENT = """
import os, signal, sqlite3, sys
from cleveragents.infrastructure.database.engine import Database

left, connect = int(sys.argv[2]), sqlite3.connect

def before(statement):
    global left
    left -= statement.lstrip().upper().startswith(("CREATE", "COMMIT"))
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def traced(*args, **kwargs):
    connection = connect(*args, **kwargs)
    connection.set_trace_callback(before)
    return connection

sqlite3.connect = traced
Database(sys.argv[1]).connection()
"""


@pytest.mark.parametrize("statement", [1, 2, 13, SCHEMA.count("CREATE ") + 1])
def test_a_process_that_is_killed_leaves_no_table_and_the_next_one_makes_all(
    tmp_path: Path, statement: int
) -> None:
    path = tmp_path / "c.db"

    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_STATEMENT, str(path), str(statement)],
        capture_output=True,
        check=False,
    )

    assert done.returncode == -9, done.stderr
    assert tables(path) == set()
    Database(str(path)).connection()
    assert "pruned_checkpoints" in tables(path)


def test_what_cannot_be_made_is_told_as_ours_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.db"
    monkeypatch.setattr(engine, "SCHEMA", f"{SCHEMA};\nthis is not SQL")

    with pytest.raises(DatabaseUnusableError, match="syntax error"):
        Database(str(path)).connection()

    assert tables(path) == set()
