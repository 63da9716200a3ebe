"""One path is read as it was at one moment, whatever happens to it while it is looked at."""

import hashlib
import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path

import pytest

from cleveragents.domain.errors import SnapshotFailedError
from cleveragents.infrastructure.files.entry import Kind
from cleveragents.infrastructure.files.read_path import (
    CHUNK,
    Sink,
    examine_mapped,
    hash_only,
    read_path,
)
from cleveragents.infrastructure.files.rooted_folder import RootedFolder


@pytest.fixture
def anchor(tmp_path: Path) -> Generator[RootedFolder]:
    with RootedFolder(str(tmp_path)) as opened:
        yield opened


def meanwhile(*changes: Callable[[], object]) -> Sink:
    """Reads the bytes, and makes one change after the first of them each time it is used."""
    left = list(changes)

    def sink(chunks: Iterable[bytes], path: bytes, size: int) -> bytes:
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
            if left:
                left.pop(0)()
        return digest.digest()

    return sink


def digest_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def test_a_file_that_grew_while_it_was_read_is_read_again(
    tmp_path: Path, anchor: RootedFolder
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1")

    row = read_path(anchor, b"f", meanwhile(lambda: file.write_bytes(b"12")))

    assert row is not None
    assert (row.size, row.hash) == (2, digest_of(b"12"))


@pytest.mark.parametrize("size", [CHUNK + 1, 3 * CHUNK], ids=["a byte", "two pieces"])
def test_a_large_file_that_shrank_while_it_was_read_is_read_again(
    tmp_path: Path, anchor: RootedFolder, size: int
) -> None:
    file = tmp_path / "f"
    file.write_bytes(bytes(size))

    row = read_path(anchor, b"f", meanwhile(lambda: os.truncate(file, 3)))

    assert row is not None
    assert (row.size, row.hash) == (3, digest_of(bytes(3)))


def test_a_large_file_is_read_to_its_end(tmp_path: Path, anchor: RootedFolder) -> None:
    data = os.urandom(CHUNK) + b"end"
    (tmp_path / "f").write_bytes(data)

    row = read_path(anchor, b"f", hash_only)

    assert row is not None
    assert row.hash == digest_of(data)


def test_a_file_that_never_holds_still_is_told(tmp_path: Path, anchor: RootedFolder) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1")
    changes = [lambda n=n: file.write_bytes(bytes(n)) for n in range(2, 20)]

    with pytest.raises(SnapshotFailedError, match="keeps changing while it is read"):
        read_path(anchor, b"f", meanwhile(*changes))


def test_a_file_that_went_while_it_was_read_is_not_there(
    tmp_path: Path, anchor: RootedFolder
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1")

    def replaced() -> None:
        file.write_bytes(b"12")
        file.unlink()

    assert read_path(anchor, b"f", meanwhile(replaced)) is None


@pytest.mark.parametrize("path", [b"no", b"no/deep", b"f/deep"])
def test_what_is_not_there_is_nothing(tmp_path: Path, anchor: RootedFolder, path: bytes) -> None:
    (tmp_path / "f").write_bytes(b"1")

    assert read_path(anchor, path, hash_only) is None


def test_pipes_and_sockets_are_nothing(tmp_path: Path, anchor: RootedFolder) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert read_path(anchor, b"pipe", hash_only) is None


def test_a_link_in_the_place_of_a_folder_is_not_followed(
    tmp_path: Path, anchor: RootedFolder
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/f").write_text("secret")
    (tmp_path / "d").symlink_to("real")

    assert read_path(anchor, b"d/f", hash_only) is None


def test_a_link_is_kept_as_what_it_says(tmp_path: Path, anchor: RootedFolder) -> None:
    (tmp_path / "l").symlink_to("nowhere")

    row = read_path(anchor, b"l", hash_only)

    assert row is not None
    assert (row.kind, row.target) == (Kind.LINK, b"nowhere")


def test_what_is_written_through_memory_is_what_it_was_read_as_twice(
    tmp_path: Path, anchor: RootedFolder
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1")
    times = file.stat()

    def written_without_a_trace() -> None:
        file.write_bytes(b"2")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    row = examine_mapped(anchor, b"f", meanwhile(written_without_a_trace))

    assert row is not None
    assert row.hash == digest_of(b"2")
