"""Journals looked at as bytes: which is hot, what it names, and what only poses as one."""

import fcntl
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.journals import MAGIC, journal_naming, journal_of, super_record

from cleveragents.infrastructure.sqlite.side_files import (
    disown,
    is_alone,
    is_hot,
    is_quiet,
    lock_request,
    owner_named,
    posing,
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    return path


@pytest.fixture
def journal(database: Path) -> Path:
    return database.with_name("app.db-journal")


def test_a_journal_counts_until_it_is_done_with(database: Path, journal: Path) -> None:
    assert is_quiet(str(database))
    for content, hot in ((b"", False), (bytes(600), False), (journal_of(database), True)):
        journal.write_bytes(content)
        assert is_hot(str(database)) is hot
        assert is_quiet(str(database)) is not hot
    journal.unlink()
    journal.mkdir()
    assert is_hot(str(database))


def test_a_log_counts_as_long_as_it_holds_anything(database: Path) -> None:
    log, index = (database.with_name(f"app.db{suffix}") for suffix in ("-wal", "-shm"))
    log.touch()
    assert is_alone(str(database))
    index.touch()
    assert is_quiet(str(database))
    assert not is_alone(str(database))
    log.write_bytes(b"x")
    assert not is_quiet(str(database))


def test_the_name_is_taken_out_and_the_rest_stays(
    database: Path, journal: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    journal.write_bytes(journal_naming(victim, database))
    assert owner_named(str(database)) == str(victim)
    assert disown(str(database)) == str(victim)
    assert journal.read_bytes() == journal_of(database)
    assert disown(str(database)) == owner_named(str(database)) == ""
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT a FROM t").fetchall() == [(1,)]
    assert victim.read_text() == "theirs"


def test_a_name_behind_a_name_goes_too(database: Path, journal: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    more = super_record(tmp_path / "two", 4096)
    journal.write_bytes(journal_naming(tmp_path / "one", database) + more)
    assert disown(str(database)) == str(tmp_path / "two")
    assert journal.read_bytes() == journal_of(database)


@pytest.mark.parametrize("content", [None, b""])
def test_a_journal_whose_owner_is_gone_is_committed(
    database: Path, journal: Path, tmp_path: Path, content: bytes | None
) -> None:
    owner = tmp_path / "gone"
    if content is not None:
        owner.write_bytes(content)
    journal.write_bytes(journal_naming(owner, database))
    assert disown(str(database)) == str(owner)
    assert not journal.exists()


def test_what_sqlite_takes_for_no_name_stays(database: Path, journal: Path) -> None:
    whole = journal_naming("/nowhere", database)
    for content in (
        b"short",
        MAGIC * 2,
        whole[:-9] + b"x" + MAGIC,
        journal_naming("\0", database),
        bytes(512) + whole[512:],
    ):
        journal.write_bytes(content)
        assert disown(str(database)) == ""
        assert journal.read_bytes() == content


def test_characters_without_a_sign_are_summed_up_too(database: Path, journal: Path) -> None:
    name = "/grüße".encode()
    record = bytearray(super_record("/grüße", 4096))
    record[-12:-8] = sum(name).to_bytes(4, "big")
    journal.write_bytes(journal_of(database) + record)
    assert disown(str(database)) == "/grüße"


def test_a_journal_that_somebody_writes_is_left_alone(database: Path, journal: Path) -> None:
    journal.write_bytes(journal_naming("/nowhere", database))
    script = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b')\n"
        "fcntl.lockf(f, fcntl.LOCK_EX, 1, 0x40000001); print(flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", script, str(database)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert disown(str(database)) == ""
        other.communicate()
    assert disown(str(database)) == "/nowhere"


def test_what_sqlite_cannot_have_made_is_named(database: Path, tmp_path: Path) -> None:
    assert posing(str(database)) == ()
    (tmp_path / "app.db-wal").symlink_to("x")
    os.mkfifo(tmp_path / "app.db-shm")
    (tmp_path / "app.db-journal").write_bytes(journal_naming("/nowhere", database))
    assert posing(str(database)) == ("-wal", "-shm")
    assert disown(str(database)) == ""
    for name in ("app.db-wal", "app.db-shm"):
        (tmp_path / name).unlink()
    (tmp_path / "second").hardlink_to(tmp_path / "app.db-journal")
    assert posing(str(database)) == ("-journal",)
    assert disown(str(database / "nothing")) == owner_named(str(database / "nothing")) == ""


def test_a_lock_request_covers_its_bytes_from_first_to_last() -> None:
    request = lock_request(fcntl.F_RDLCK, 10, 12)
    assert int.from_bytes(request[8:16], sys.byteorder) == 10
    assert int.from_bytes(request[16:24], sys.byteorder) == 3
