"""In which run of the machine a sandbox was last found to be what it should be."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleveragents.infrastructure.snapshots import boots
from cleveragents.infrastructure.snapshots.boots import Boots


@pytest.fixture
def boot_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What the kernel says; read once by each process."""
    path = tmp_path / "boot_id"
    path.write_text("first\n")
    monkeypatch.setattr(boots, "_BOOT_ID", str(path))
    _another_process()
    yield path
    _another_process()


@pytest.fixture
def known() -> Boots:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE boots (resource TEXT PRIMARY KEY, boot TEXT NOT NULL)")
    return Boots(db, "r")


def _another_process() -> None:
    boots._this_boot.cache_clear()


def test_what_nobody_has_seen_is_not_in_doubt(boot_id: Path, known: Boots) -> None:
    assert boot_id.exists()
    assert not known.is_doubtful


def test_after_a_restart_it_is_in_doubt_until_it_is_believed(boot_id: Path, known: Boots) -> None:
    known.begin()
    assert not known.is_doubtful
    boot_id.write_text("second\n")
    _another_process()
    known.begin()  # to look at it again is no proof
    assert known.is_doubtful
    known.believe()
    assert not known.is_doubtful


def test_where_the_system_does_not_tell_nothing_is_believed(boot_id: Path, known: Boots) -> None:
    boot_id.unlink()
    known.begin()
    assert known.is_doubtful
    known.believe()
    assert known.is_doubtful
