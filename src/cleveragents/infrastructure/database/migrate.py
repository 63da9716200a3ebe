"""Running the migrations; importing this imports Alembic, so nothing does until one is due."""

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def open_engine(path: str) -> Engine:
    """An engine whose transactions hold DDL too, so that a killed migration leaves nothing."""

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=30.0, isolation_level=None)

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    event.listen(engine, "begin", begin)
    return engine


def upgrade(path: str) -> None:
    """Bring the SQLite file at `path` to the newest schema, or leave it as it was."""
    config = alembic_config()
    try:
        with open_engine(path).begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise error.orig from error
        raise
