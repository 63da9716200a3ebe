"""Copies of one file have the bytes they should have, or there is none."""

import os
import stat
from pathlib import Path

import pytest

from cleveragents.infrastructure.files.copy.clone_bytes import copy_bytes
from cleveragents.infrastructure.files.copy.one_file import copy_one


def _copied(tmp_path: Path, data: bytes, size: int) -> bytes:
    (tmp_path / "one").write_bytes(data)
    with (tmp_path / "one").open("rb") as one, (tmp_path / "two").open("w+b") as two:
        copy_bytes(one.fileno(), two.fileno(), size)
    return (tmp_path / "two").read_bytes()


def test_as_many_bytes_are_copied_as_are_asked_for(tmp_path: Path) -> None:
    data = bytes(range(256)) * 100
    assert _copied(tmp_path, data, len(data)) == data
    assert _copied(tmp_path, data, 1000) == data[:1000]
    assert _copied(tmp_path, b"", 0) == b""


def test_a_file_with_fewer_bytes_than_asked_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="ended while it was copied"):
        _copied(tmp_path, b"short", 6)


def test_holes_stay_holes(tmp_path: Path) -> None:
    with (tmp_path / "holes").open("wb") as file:
        file.write(b"begin")
        file.seek(8 << 20)
        file.write(b"end")
    data = (tmp_path / "holes").read_bytes()
    with (tmp_path / "holes").open("rb") as one, (tmp_path / "copy").open("wb") as two:
        copy_bytes(one.fileno(), two.fileno(), len(data))
    assert (tmp_path / "copy").read_bytes() == data
    assert (tmp_path / "copy").stat().st_blocks * 512 < len(data)


def test_a_copy_has_the_mode_and_the_time_and_never_replaces_anything(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("one\n")
    (tmp_path / "one").chmod(0o640)
    os.utime(tmp_path / "one", ns=(3, 4))
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        copy_one(folder, b"one", folder, b"two", synced=True)
        with pytest.raises(FileExistsError):
            copy_one(folder, b"one", folder, b"two", synced=True)
    finally:
        os.close(folder)
    found = (tmp_path / "two").stat()
    assert (tmp_path / "two").read_text() == "one\n"
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o640, 4)
