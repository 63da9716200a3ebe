"""Which files may have other bytes than their blobs, by attributes and settings."""

import subprocess
from pathlib import Path

import pytest

from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.config import GitSettings
from cleveragents.infrastructure.sandbox.git.proofs.conversions import (
    Conversions,
    blob_sizes,
    conversions,
)

PATHS = (b"a.txt", b"b.bin", b".gitattributes")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def found(repository: Path, *paths: bytes) -> Conversions:
    git = Git(str(repository))
    return conversions(git, GitSettings.read(git), f"{repository}/.git", paths or PATHS)


def attributes(repository: Path, text: str) -> None:
    (repository / ".gitattributes").write_text(text)


def test_without_attributes_and_settings_nothing_is_converted(repository: Path) -> None:
    assert found(repository, b"a.txt") == Conversions()


@pytest.mark.parametrize(
    "told", ["filter=any", "ident", "working-tree-encoding=UTF-16", "filter=lfs -text"]
)
def test_what_a_program_or_an_encoding_makes_of_a_file_is_never_certain(
    repository: Path, told: str
) -> None:
    attributes(repository, f"*.txt {told}\n")
    assert set(found(repository).never) == {b"a.txt"}


@pytest.mark.parametrize("told", ["text", "text=auto", "eol=crlf", "crlf", "crlf=input"])
def test_line_ends_are_a_question_of_sizes(repository: Path, told: str) -> None:
    attributes(repository, f"*.txt {told}\n")
    assert set(found(repository).by_size) == {b"a.txt"}


@pytest.mark.parametrize("told", ["-text", "binary", "diff=python", "-filter", "-ident"])
def test_what_is_switched_off_or_has_to_do_with_no_bytes_does_not_count(
    repository: Path, told: str
) -> None:
    attributes(repository, f"*.txt {told}\n")
    assert not (set(found(repository).never) | set(found(repository).by_size))


@pytest.mark.parametrize("place", [".git/info/attributes", "elsewhere"])
def test_attributes_are_found_wherever_they_are(repository: Path, place: str) -> None:
    path = repository / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("*.txt filter=any\n")
    if place == "elsewhere":
        Git(str(repository)).run("config", "core.attributesFile", str(path))
    assert set(found(repository, b"a.txt").never) == {b"a.txt"}


@pytest.mark.parametrize(("value", "counts"), [("true", True), ("input", True), ("false", False)])
def test_line_ends_by_setting_are_those_of_all_files(
    repository: Path, value: str, *, counts: bool
) -> None:
    Git(str(repository)).run("config", "core.autocrlf", value)
    assert found(repository, b"a.txt").all_by_size is counts


def test_sizes_are_told_of_blobs_that_are_there(repository: Path) -> None:
    git = Git(str(repository))
    oid = git.run("hash-object", "-w", "--stdin", input=b"five\n").stdout.decode().strip()
    tree = git.run("mktree", input=b"").stdout.decode().strip()
    assert blob_sizes(git, [oid, tree, "1" * 40]) == {oid: 5}
