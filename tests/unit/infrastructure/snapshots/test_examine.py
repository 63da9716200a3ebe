"""A file that changed while it was read is read again, by whatever that shows."""

import os
from pathlib import Path

import pytest

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files import read_path as examine
from cleveragents.infrastructure.files.rooted_folder import RootedFolder

FIELDS = tuple(name for name in dir(os.stat_result) if name.startswith("st_"))


class _Found:
    """What fstat says, but for one field."""

    def __init__(self, found: os.stat_result, changed: str) -> None:
        for name in FIELDS:
            setattr(self, name, getattr(found, name) + (name == changed))


@pytest.mark.parametrize("changed", ["st_size", "st_mode", "st_mtime_ns", "st_ctime_ns"])
@pytest.mark.parametrize("look", [examine.read_path, examine.examine_file])
def test_every_mark_is_compared(tmp_path: Path, monkeypatch, changed: str, look) -> None:
    (tmp_path / "f").write_text("x")
    calls = 0

    def fstat(fd: int) -> object:
        nonlocal calls
        calls += 1
        return _Found(os.stat(fd), changed if calls % 2 == 0 else "")

    monkeypatch.setattr(examine, "_PAUSE", 0)
    with RootedFolder(str(tmp_path)) as anchor:
        monkeypatch.setattr(os, "fstat", fstat)
        with pytest.raises(SnapshotFailedError, match="keeps changing while it is read"):
            look(anchor, b"f", examine.hash_only)


def test_that_it_was_read_is_no_change(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "f").write_text("x")
    calls = 0

    def fstat(fd: int) -> object:
        nonlocal calls
        calls += 1
        return _Found(os.stat(fd), "st_atime_ns" if calls % 2 == 0 else "")

    with RootedFolder(str(tmp_path)) as anchor:
        monkeypatch.setattr(os, "fstat", fstat)
        seen = examine.read_path(anchor, b"f", examine.hash_only)
    assert seen is not None
    assert seen.size == 1
