"""What an index says of files is read as git has written it, in every version, or not at all."""

import os
import subprocess
from pathlib import Path

import pytest

from cleveragents.infrastructure.sandbox.git.proofs.index_entries import entries_of

NAMES = ("a", "deep/er/b", "deep/er/bb", "n" * 200, "odd\tname")


def git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", *words], cwd=folder, input=given, capture_output=True, check=True
    ).stdout


@pytest.fixture(params=["sha1", "sha256"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", f"--object-format={request.param}")
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"content of {name}\n")
    (tmp_path / "a").chmod(0o755)
    git(tmp_path, "add", "-A")
    return tmp_path


def entries(folder: Path):
    oid_bytes = len(git(folder, "hash-object", "a").strip()) // 2
    return entries_of((folder / ".git/index").read_bytes(), oid_bytes)


@pytest.mark.parametrize("version", [2, 4])
def test_every_entry_has_the_blob_and_the_status_of_its_file(
    repository: Path, version: int
) -> None:
    git(repository, "update-index", "--index-version", str(version))
    git(repository, "update-index", "--refresh")

    found = entries(repository)

    assert found is not None
    assert set(found) == {name.encode() for name in NAMES}
    for name in NAMES:
        status, entry = os.lstat(repository / name), found[name.encode()]
        assert entry.oid.hex() == git(repository, "hash-object", name).decode().strip()
        assert (entry.size, entry.uid, entry.gid) == (
            status.st_size,
            status.st_uid,
            status.st_gid,
        )
        assert entry.ino == status.st_ino & 0xFFFFFFFF
        assert entry.ctime * 10**9 + entry.ctime_rest == status.st_ctime_ns
        assert entry.mtime * 10**9 + entry.mtime_rest == status.st_mtime_ns
        assert entry.is_file


@pytest.mark.parametrize(
    "words",
    [("update-index", "--assume-unchanged", "a"), ("update-index", "--skip-worktree", "a")],
    ids=" ".join,
)
def test_what_the_user_said_instead_of_git_is_no_proof(
    repository: Path, words: tuple[str, ...]
) -> None:
    git(repository, *words)

    found = entries(repository)

    assert found is not None
    assert b"a" not in found
    assert b"deep/er/b" in found


def test_what_is_only_intended_or_disputed_is_no_proof(repository: Path) -> None:
    (repository / "later").touch()
    git(repository, "add", "--intent-to-add", "later")
    oid = git(repository, "hash-object", "-w", "a").decode().strip()
    stages = "".join(f"100644 {oid} {stage}\tboth\n" for stage in (1, 2, 3))
    git(repository, "update-index", "--index-info", given=stages.encode())

    found = entries(repository)

    assert found is not None
    assert set(found) == {name.encode() for name in NAMES}


def test_a_split_index_is_half_of_one_and_gives_nothing(repository: Path) -> None:
    git(repository, "update-index", "--split-index")
    assert entries(repository) is None


@pytest.mark.parametrize("damage", [100, -30])
def test_a_damaged_index_gives_nothing(repository: Path, damage: int) -> None:
    data = bytearray((repository / ".git/index").read_bytes())
    data[damage] ^= 1
    (repository / ".git/index").write_bytes(data)
    assert entries(repository) is None


@pytest.mark.parametrize("data", [b"", b"DIRC", b"CRID" + bytes(60), b"DIRC" + bytes(60)])
def test_what_is_no_index_gives_nothing(data: bytes) -> None:
    assert entries_of(data, 20) is None
