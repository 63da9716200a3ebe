"""A file read in shares by several threads has the hashes of its blocks, each at its place."""

import os
import random
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cleveragents.infrastructure.snapshots.pages.layout import (
    BLOCK,
    FAST,
    blocks_in,
    fast_at,
    fast_hash,
    read_block,
)
from cleveragents.infrastructure.snapshots.pages.scan import fast_hashes

SEED = 7


@contextmanager
def opened(path: Path) -> Generator[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def _file(tmp_path: Path, blocks: int, tail: bytes) -> Path:
    path = tmp_path / "big"
    block = random.Random(1).randbytes(BLOCK)
    with path.open("wb") as file:
        for number in range(blocks):
            file.write(block[:-1] + bytes([number]))
        file.write(tail)
    return path


@pytest.mark.parametrize(
    ("blocks", "tail"),
    [(0, b""), (0, b"tail"), (1, b""), (9, b"tail"), (32, b""), (37, b"tail"), (70, b"")],
)
def test_each_block_has_its_hash_at_its_place(tmp_path: Path, blocks: int, tail: bytes) -> None:
    with opened(_file(tmp_path, blocks, tail)) as fd:
        size = os.fstat(fd).st_size
        expected = [fast_hash(read_block(fd, n, size), SEED) for n in range(blocks_in(size))]
        assert fast_hashes(fd, size, SEED) == b"".join(expected)


def test_a_file_that_ended_early_gives_the_hashes_up_to_there(tmp_path: Path) -> None:
    path = _file(tmp_path, 40, b"")
    with opened(path) as fd:
        whole = fast_hashes(fd, 40 * BLOCK, SEED)
        os.truncate(path, 5 * BLOCK + 100)
        cut = fast_hashes(fd, 40 * BLOCK, SEED)
    assert cut == whole[: 5 * FAST]
    assert fast_at(cut, 5) == b""


def test_a_file_that_cannot_be_read_is_an_error_and_not_a_short_file(tmp_path: Path) -> None:
    fd = os.open(_file(tmp_path, 40, b""), os.O_WRONLY)
    try:
        for size in (BLOCK, 40 * BLOCK):
            with pytest.raises(OSError, match="Bad file descriptor"):
                fast_hashes(fd, size, SEED)
    finally:
        os.close(fd)


def test_where_no_thread_can_be_started_the_file_is_read_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with opened(_file(tmp_path, 40, b"tail")) as fd:
        size = os.fstat(fd).st_size
        expected = fast_hashes(fd, size, SEED)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert fast_hashes(fd, size, SEED) == expected
