"""An index of a checkout, made ready for a later comparison: git finds every change by it."""

import os
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cleveragents.infrastructure.sandbox.git.proofs.first_index import FirstIndex, is_as_it_was

NAMES = ("a", "d/b", "d/e/c", "empty", "link", "run")


class Checkout:
    """A working folder, and its index as git wrote it when nobody had changed anything."""

    def __init__(self, top: Path, *, sha256: bool = False) -> None:
        self.top, self.target = top / "work", top / "index"
        self.git("init", "-q", f"--object-format={'sha256' if sha256 else 'sha1'}", str(self.top))
        for name in NAMES[:3]:
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(f"{name}\n")
        (self.top / "empty").touch()
        (self.top / "link").symlink_to("a")
        (self.top / "run").write_text("#!/bin/sh\n")
        (self.top / "run").chmod(0o755)
        self.git("add", "-A")
        self.first = str(top / "first")
        Path(self.first).write_bytes((self.top / ".git/index").read_bytes())
        self.oid_bytes = 32 if sha256 else 20

    def git(self, *words: str, index: Path | None = None) -> str:
        place = self.top if self.top.exists() else self.top.parent
        env = os.environ | ({"GIT_INDEX_FILE": str(index)} if index else {})
        done = subprocess.run(["git", *words], cwd=place, env=env, capture_output=True, check=True)
        return done.stdout.decode()

    def put(self) -> bool:
        return FirstIndex(self.first, str(self.top), self.oid_bytes).put(str(self.target))

    def found(self) -> list[str]:
        """What git thinks has changed, once it has looked at what it was told to look at."""
        assert self.put()
        subprocess.run(
            ["git", "update-index", "-q", "--refresh"],
            cwd=self.top,
            env={**os.environ, "GIT_INDEX_FILE": str(self.target)},
            check=False,
        )
        return self.git("diff-files", "--name-only", index=self.target).split()


@pytest.fixture(params=[False, True], ids=["sha1", "sha256"])
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Checkout:
    return Checkout(tmp_path, sha256=request.param)


def test_nothing_has_changed_and_nothing_is_read(checkout: Checkout) -> None:
    assert checkout.put()
    # Git would say so of every file that it had to read.
    told = checkout.git("ls-files", "--debug", index=checkout.target)
    assert told.count("mtime: 0:0") == 0
    assert checkout.found() == []


def test_the_same_size_in_the_same_second_with_the_time_set_back_is_a_change(
    checkout: Checkout,
) -> None:
    path = checkout.top / "d/b"
    before = path.stat()
    path.write_text("x/y\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert checkout.found() == ["d/b"]


def test_a_file_that_was_only_touched_is_none(checkout: Checkout) -> None:
    os.utime(checkout.top / "a", ns=(1, 1))
    assert checkout.found() == []


def changed_mode(top: Path) -> None:
    (top / "run").chmod(stat.S_IRUSR)


def removed(top: Path) -> None:
    (top / "run").unlink()


def linked_elsewhere(top: Path) -> None:
    (top / "run").unlink()
    (top / "run").symlink_to("a")


def a_folder_instead(top: Path) -> None:
    (top / "run").unlink()
    (top / "run").mkdir()


def emptied(top: Path) -> None:
    (top / "run").write_bytes(b"")


CHANGES = [changed_mode, removed, linked_elsewhere, a_folder_instead, emptied]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_kind_of_change_is_found(checkout: Checkout, change: Any) -> None:
    change(checkout.top)
    assert checkout.found() == ["run"]


def test_a_folder_that_became_a_link_to_its_like_is_found(checkout: Checkout) -> None:
    (checkout.top / "d").rename(checkout.top.parent / "elsewhere")
    (checkout.top / "d").symlink_to(checkout.top.parent / "elsewhere")
    assert {"d/b", "d/e/c"} <= set(checkout.found())


def test_an_empty_file_that_was_filled_is_found(checkout: Checkout) -> None:
    (checkout.top / "empty").write_text("more\n")
    assert checkout.found() == ["empty"]


def cut_off(data: bytes) -> bytes:
    return data[:-30]


def others(data: bytes) -> bytes:
    return data[:100] + b"?" + data[101:]


@pytest.mark.parametrize("harm", [cut_off, others, lambda _: b""], ids=["short", "other", "empty"])
def test_one_that_is_damaged_is_left_to_git(checkout: Checkout, harm: Any) -> None:
    first = Path(checkout.first)
    first.write_bytes(harm(first.read_bytes()))
    assert not checkout.put()
    assert not checkout.target.exists()


def test_one_that_was_cut_off_by_a_power_cut_is_left_to_git(checkout: Checkout) -> None:
    first = Path(checkout.first)
    data = first.read_bytes()
    for zeroes in range(20, len(data) - 12, 7):
        first.write_bytes(data[:-zeroes] + bytes(zeroes))
        assert not checkout.put(), zeroes


def test_one_that_git_would_believe_without_a_look_is_left_to_git(checkout: Checkout) -> None:
    checkout.git("update-index", "--assume-unchanged", "a")
    Path(checkout.first).write_bytes((checkout.top / ".git/index").read_bytes())
    assert not checkout.put()


def test_where_times_are_whole_seconds_the_last_one_is_read(checkout: Checkout) -> None:
    """As such a file system would tell it: a file and the index are of one second."""
    whole = 1_700_000_000
    found = (checkout.top / "a").lstat()
    status = (whole, 0, whole, 0, 0, found.st_ino & 0xFFFFFFFF, 0, 0, 0, found.st_size)
    told: Any = SimpleNamespace(
        st_ctime_ns=whole * 10**9,
        st_mtime_ns=whole * 10**9,
        st_ino=found.st_ino,
        st_size=found.st_size,
    )
    assert not is_as_it_was(told, status, written=whole)
    assert is_as_it_was(told, status, written=whole + 1)


@pytest.mark.parametrize("version", ["3", "4"])
def test_another_form_is_left_to_git(checkout: Checkout, version: str) -> None:
    checkout.git("update-index", "--skip-worktree", "a")
    checkout.git("update-index", "--index-version", version)
    Path(checkout.first).write_bytes((checkout.top / ".git/index").read_bytes())
    assert not checkout.put()


def test_where_there_is_none_git_begins_anew(checkout: Checkout) -> None:
    Path(checkout.first).unlink()
    assert not checkout.put()
