"""A git index that is read without git says what git says; what is not plain is left to it."""

import os
import subprocess
from pathlib import Path

import pytest

from cleveragents.infrastructure.sandbox.git.repository.new_index_reader import (
    entries_at,
    read_new_index,
)

OID_BYTES = {"sha1": 20, "sha256": 32}


def git(folder: Path, *words: str) -> bytes:
    named = ("-c", "user.name=U", "-c", "user.email=u@example.org", "-c", "index.version=2")
    done = subprocess.run(["git", "-C", str(folder), *named, *words], capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(folder: Path, algorithm: str = "sha1") -> Path:
    """With names of every length up to the padding, odd ones, a link, a program, a submodule."""
    git(folder, "init", "-q", f"--object-format={algorithm}")
    for length in range(1, 20):
        (folder / ("n" * length)).write_text(str(length))
    (folder / "sub folder").mkdir()
    (folder / "sub folder/tab\tline\nend").write_text("odd")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe")).write_text("not UTF-8")
    (folder / "link").symlink_to("n")
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o755)
    git(folder, "add", "-A")
    named = f"160000,{'1' * OID_BYTES[algorithm] * 2},module"
    git(folder, "update-index", "--add", "--cacheinfo", named)
    return folder


def listed(folder: Path, algorithm: str = "sha1") -> bytes | None:
    found = read_new_index((folder / ".git/index").read_bytes(), OID_BYTES[algorithm])
    return found.listing if found else None


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_plain_index_reads_as_git_lists_it(tmp_path: Path, algorithm: str) -> None:
    folder = repository(tmp_path, algorithm)
    assert listed(folder, algorithm) == git(folder, "ls-files", "--stage", "-v", "-z") != b""
    git(folder, "commit", "-q", "-m", "with trees that git notes in it")
    assert listed(folder, algorithm) == git(folder, "ls-files", "--stage", "-v", "-z")


@pytest.mark.parametrize(
    "words",
    [
        ("update-index", "--assume-unchanged", "n"),
        ("update-index", "--skip-worktree", "n"),
        ("update-index", "--index-version", "4"),
        ("update-index", "--split-index"),
        ("add", "--intent-to-add", "later"),
    ],
    ids=" ".join,
)
def test_an_index_that_says_more_is_left_to_git(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = repository(tmp_path)
    (folder / "later").touch()
    git(folder, *words)
    assert listed(folder) is None


def test_a_merge_that_stopped_is_left_to_git(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    oid = git(folder, "hash-object", "-w", "n").decode().strip()
    stages = "".join(f"100644 {oid} {stage}\tboth\n" for stage in (1, 2, 3))
    subprocess.run(
        ["git", "-C", str(folder), "update-index", "--index-info"],
        input=stages.encode(),
        check=True,
    )
    assert listed(folder) is None


@pytest.mark.parametrize("data", [b"", b"DIRC", b"CRID" + bytes(60)])
def test_what_is_no_index_is_left_to_git(data: bytes) -> None:
    assert read_new_index(data, 20) is None


def test_how_many_paths_an_index_names_is_in_its_first_bytes(tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.write_bytes(b"DIRC" + (4).to_bytes(4, "big") + (70_000).to_bytes(4, "big") + b"and more")
    assert entries_at(str(index)) == 70_000


@pytest.mark.parametrize("data", [None, b"", b"DIRC", b"other than an index"])
def test_of_what_is_no_index_nothing_is_known(tmp_path: Path, data: bytes | None) -> None:
    index = tmp_path / "index"
    if data is not None:
        index.write_bytes(data)
    assert entries_at(str(index)) == 0
