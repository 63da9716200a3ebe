"""A rollback journal of ours is one of SQLite's: whoever opens the database next rolls it back."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.in_place_databases import make, notes

from cleveragents.infrastructure.sqlite.rollback_journal import (
    covered,
    page_size_of,
    write_journal,
)
from cleveragents.infrastructure.sqlite.side_files import PENDING


def _page_size(path: Path) -> int | None:
    with path.open("rb") as file:
        return page_size_of(file.fileno())


def _filled(path: Path, page_size: int) -> bytes:
    make(path, page_size=page_size)
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany("INSERT INTO note (text) VALUES (?)", [("x" * 300,)] * 2000)
    return path.read_bytes()


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
@pytest.mark.parametrize("size", [0, 70_000, 2_000_000])
def test_sqlite_rolls_back_what_was_written_under_it(
    tmp_path: Path, page_size: int, size: int
) -> None:
    path = tmp_path / "app.db"
    before = _filled(path, page_size)
    assert _page_size(path) == page_size
    ranges = [(0, 5000), (200_000, 200_001), (size, len(before))]
    with path.open("r+b") as file:
        write_journal(str(path), file.fileno(), page_size, covered(ranges, page_size, len(before)))
        os.pwrite(file.fileno(), b"?" * 5000, 0)
        os.pwrite(file.fileno(), b"?", 200_000)
        os.ftruncate(file.fileno(), max(size, 70_000))

    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    assert path.read_bytes() == before
    assert not path.with_name("app.db-journal").exists()


def test_without_its_header_it_does_not_count(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    with path.open("r+b") as file:
        write_journal(str(path), file.fileno(), 4096, [1, 2])
    journal = path.with_name("app.db-journal")
    journal.write_bytes(bytes(512) + journal.read_bytes()[512:])

    assert notes(path) == ["milk"]


def test_there_is_never_a_second_one(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    path.with_name("app.db-journal").write_bytes(b"")
    with path.open("r+b") as file, pytest.raises(FileExistsError):
        write_journal(str(path), file.fileno(), 4096, [1])


def test_the_page_of_the_locks_is_in_no_journal() -> None:
    size = PENDING + 1_000_000
    found = covered([(PENDING - 4096, PENDING + 8192)], 4096, size)

    lock_page = PENDING // 4096 + 1
    assert found == [lock_page - 1, lock_page + 1]


def test_pages_are_counted_from_one_and_end_with_the_file() -> None:
    assert covered([(0, 1), (4095, 4097)], 4096, 8192) == [1, 2]
    assert covered([(4096, 99_999)], 4096, 8192) == [2]
    assert covered([(8192, 12288)], 4096, 8192) == []
    assert covered([(4096, 8192)], 512, 8192) == list(range(9, 17))
    assert covered([(0, 4096)], 65536, 65536) == [1]


@pytest.mark.parametrize(
    "content",
    [
        b"junk",
        b"SQLite format 3\0",
        b"SQLite format 3\0\x03\x00" + bytes(750),
        b"SQLite format 3\0\x10\x00" + bytes(5000),
        b"SQLite format 3\0\x00\x00" + bytes(4078),
    ],
)
def test_what_sqlite_would_not_take_for_a_database_has_no_pages(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert _page_size(path) is None
    path.write_bytes(b"")
    assert _page_size(path) == 4096
