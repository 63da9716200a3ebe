"""Migrations: they lead to exactly the schema, and one that dies leaves nothing behind."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from cleveragents.domain.errors import DatabaseUnusableError
from cleveragents.infrastructure.database import migrate
from cleveragents.infrastructure.database.engine import REVISIONS, Database
from cleveragents.infrastructure.database.schema import metadata


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def test_the_known_revisions_are_those_that_alembic_finds() -> None:
    script = ScriptDirectory.from_config(migrate.alembic_config())

    found = [revision.revision for revision in script.walk_revisions()]

    assert tuple(reversed(found)) == REVISIONS
    assert script.get_heads() == [REVISIONS[-1]]


def test_an_empty_file_becomes_exactly_the_schema(tmp_path: Path) -> None:
    path = str(tmp_path / "c.db")
    migrate.upgrade(path)

    with migrate.open_engine(path).connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == REVISIONS[-1]


def test_the_comparison_above_would_see_a_difference(tmp_path: Path) -> None:
    path = str(tmp_path / "c.db")
    migrate.upgrade(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE plans DROP COLUMN seq")
        connection.execute("DROP INDEX ix_tool_calls_plan_id_seq")

    with migrate.open_engine(path).connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), metadata)

    assert {difference[0] for difference in found} == {"add_column", "add_index"}


def test_deleting_a_group_cascades_in_the_database_itself(tmp_path: Path) -> None:
    """The comparison above does not look at this."""
    path = tmp_path / "c.db"
    migrate.upgrade(str(path))

    with closing(sqlite3.connect(path)) as connection:
        for table in ("checkpoints", "checkpoint_resource_states"):
            keys = connection.execute(f"PRAGMA foreign_key_list({table})").fetchall()
            cascading = {key[3] for key in keys if key[6] == "CASCADE"}
            assert cascading == {"group_id"}


def test_upgrading_what_is_new_already_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    migrate.upgrade(str(path))
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())

    migrate.upgrade(str(path))

    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


KILLED_AT_STATEMENT = """
import os, signal, sys
from sqlalchemy import Engine, event
from cleveragents.infrastructure.database import migrate

left = int(sys.argv[2])

@event.listens_for(Engine, "after_cursor_execute")
def after(connection, cursor, statement, *rest):
    global left
    left -= statement.lstrip().upper().startswith("CREATE")
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

migrate.upgrade(sys.argv[1])
"""


@pytest.mark.parametrize("statement", [1, 6, 13])
def test_a_migration_that_is_killed_leaves_nothing_and_can_be_repeated(
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
    assert "plans" in tables(path)


BROKEN_REVISION = """
from alembic import op
revision = "0004"
down_revision = "{previous}"

def upgrade():
    op.execute("CREATE TABLE half (x INTEGER)")
    op.execute("DELETE FROM plans")
    op.execute("this is not SQL")
"""


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, extra = tmp_path / "c.db", tmp_path / "versions"
    migrate.upgrade(str(path))
    with closing(sqlite3.connect(path)) as connection:
        columns = len(connection.execute("SELECT * FROM plans").description)
        marks = ",".join("?" * columns)
        connection.execute(f"INSERT INTO plans VALUES ({marks})", ["x"] * columns)
        connection.commit()
        before = list(connection.iterdump())
    extra.mkdir()
    (extra / "0004_broken.py").write_text(BROKEN_REVISION.format(previous=REVISIONS[-1]))
    monkeypatch.setattr(migrate, "alembic_config", lambda: config_with(extra))

    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        migrate.upgrade(str(path))

    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


def config_with(extra: Path) -> Config:
    config = Config()
    folder = Path(migrate.__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", f"{folder / 'versions'}\n{extra}")
    return config


def test_an_error_of_a_migration_is_told_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = tmp_path / "versions"
    extra.mkdir()
    (extra / "0004_broken.py").write_text(BROKEN_REVISION.format(previous=REVISIONS[-1]))
    monkeypatch.setattr(migrate, "alembic_config", lambda: config_with(extra))

    with pytest.raises(DatabaseUnusableError):
        Database(str(tmp_path / "c.db")).connection()

    assert tables(tmp_path / "c.db") == set()
