"""The first snapshot of a large tree: what git has proven is not read, and all of it comes back."""

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from tests.support.runners import adapters_in
from tests.support.trees import tree_of

from cleveragents.domain.ids import PlanId, ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import GIT_CHECKOUT
from cleveragents.infrastructure.sandbox.checkpoint_manager import CheckpointManager
from cleveragents.infrastructure.snapshots.store.blob_keys import is_blob_key

PLAN = PlanId("01ARZ3NDEKTSV4RRFFQ69G5FAV")
TREE = ResourceId("01ARZ3NDEKTSV4RRFFQ69G5FAW")
MANY = 450  # more than are walked by us
CRLF = b"one\r\ntwo\r\n"


class Large:
    """A project with many files, and those that a test adds."""

    def __init__(self, top: Path, *options: str) -> None:
        self.top, self.project = top, top / "project"
        self.project.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", *options)
        for key, value in (("user.name", "n"), ("user.email", "e@x"), ("gc.auto", "0")):
            self.git("config", key, value)
        for number in range(MANY):
            self.write(f"d{number % 9}/e{number % 4}/f{number}.txt", b"%d\n" % number * 40)
        self.write("run.sh", b"#!/bin/sh\n")
        (self.project / "run.sh").chmod(0o755)
        (self.project / "link").symlink_to("run.sh")

    def write(self, name: str, data: bytes) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.project, capture_output=True, check=True, text=True
        )
        return done.stdout.strip()

    def sandbox(self) -> Path:
        """Committed, and made; the first snapshot is taken."""
        self.git("add", "-A")
        self.git("commit", "-qm", "base")
        self.path = self.top / "data/sandboxes" / PLAN / "code"
        self.resource = PlanResource(
            resource_id=TREE,
            plan_id=PLAN,
            name="code",
            type=GIT_CHECKOUT.type,
            location=str(self.project),
            base=self.git("rev-parse", "HEAD"),
            sandbox_path=str(self.path),
            details={"git_dir": str(self.project / ".git")},
        )
        adapters = adapters_in(self.top / "data")
        adapters.of(self.resource).sandbox.create(self.resource)
        self.store = CheckpointManager(adapters)
        self.first = self.store.capture(self.resource)
        return self.path

    def another_process(self) -> None:
        self.store.close()
        self.store = CheckpointManager(adapters_in(self.top / "data"))

    def named_by_blob(self) -> set[str]:
        """The files whose content nobody has read."""
        path = self.top / "data/snapshots" / f"{PLAN}.db"
        with sqlite3.connect(path) as db:
            rows = [
                row
                for table in ("versions", "recent_paths")
                for row in db.execute(f"SELECT path, hash FROM {table} WHERE seq=1")
            ]
        return {os.fsdecode(name) for name, key in rows if is_blob_key(key)}

    def comes_back(self) -> None:
        """Whatever is done to the sandbox, a restore makes it what it was."""
        before = tree_of(self.path)
        for number in range(0, MANY, 3):
            name = self.path / f"d{number % 9}/e{number % 4}/f{number}.txt"
            if number % 2:
                name.unlink()
            else:
                name.write_bytes(b"other\n")
        (self.path / "run.sh").chmod(0o600)
        (self.path / "new").write_bytes(b"new")
        self.store.capture(self.resource)
        restored = self.store.restore(self.resource, self.first.ref)
        assert tree_of(self.path) == before
        assert restored.snapshot.state_hash == self.first.state_hash


@pytest.fixture(params=["sha1", "sha256"])
def large(request: pytest.FixtureRequest, tmp_path: Path) -> Large:
    return Large(tmp_path, f"--object-format={request.param}")


@pytest.fixture
def plain(tmp_path: Path) -> Large:
    return Large(tmp_path)


def test_what_git_has_checked_out_is_not_read_and_comes_back(large: Large) -> None:
    large.sandbox()

    assert len(large.named_by_blob()) == MANY + 1
    large.comes_back()


def test_another_process_restores_it_too_and_finds_nothing_changed(plain: Large) -> None:
    plain.sandbox()
    plain.another_process()

    assert plain.store.capture(plain.resource).ref == plain.first.ref
    plain.comes_back()


def test_bytes_that_were_brought_back_by_hand_are_the_first_state(plain: Large) -> None:
    file = plain.sandbox() / "d1/e1/f1.txt"
    data = file.read_bytes()
    file.write_bytes(b"other\n")
    changed = plain.store.capture(plain.resource)
    file.write_bytes(data)
    again = plain.store.capture(plain.resource)

    assert changed.state_hash != plain.first.state_hash
    assert again.state_hash == plain.first.state_hash
    plain.another_process()
    assert not plain.store.compare(plain.resource, plain.first.ref)


@pytest.mark.parametrize(
    ("attributes", "data"),
    [
        ("*.odd eol=crlf\n", b"one\ntwo\n"),
        ("*.odd ident\n", b"$Id$\n"),
        ("*.odd working-tree-encoding=UTF-16LE\n", "zwei Wörter\n".encode("utf-16-le")),
        ("*.odd filter=turned\n", b"abc\n"),
    ],
    ids=["line ends", "ident", "encoding", "filter"],
)
def test_what_is_converted_is_read(plain: Large, attributes: str, data: bytes) -> None:
    plain.git("config", "filter.turned.clean", "tr a-c d-f")
    plain.git("config", "filter.turned.smudge", "tr d-f a-c")
    plain.write("some.odd", data)
    plain.write(".gitattributes", attributes.encode())
    path = plain.sandbox()

    assert "some.odd" not in plain.named_by_blob()
    assert len(plain.named_by_blob()) == MANY + 2  # with the attributes
    shown = (path / "some.odd").read_bytes()
    (path / "some.odd").unlink()
    plain.store.restore(plain.resource, plain.first.ref)
    assert (path / "some.odd").read_bytes() == shown
    plain.comes_back()


def test_line_ends_that_git_leaves_alone_are_proven_by_the_size(plain: Large) -> None:
    plain.write(".gitattributes", b"* text=auto\n")
    plain.sandbox()

    assert len(plain.named_by_blob()) == MANY + 2
    plain.comes_back()


def test_line_ends_by_setting_are_read(plain: Large) -> None:
    plain.git("config", "core.autocrlf", "true")
    path = plain.sandbox()

    assert (path / "d1/e1/f1.txt").read_bytes().count(b"\r\n") == 40
    assert plain.named_by_blob() == set()
    plain.comes_back()


def test_a_blob_that_git_has_lost_is_stored_anew_before_its_file_goes(plain: Large) -> None:
    file = plain.sandbox() / "d1/e1/f1.txt"
    data = file.read_bytes()
    oid = plain.git("hash-object", "d1/e1/f1.txt")
    (plain.project / ".git/objects" / oid[:2] / oid[2:]).unlink()
    file.write_bytes(b"other\n")
    changed = plain.store.capture(plain.resource)
    file.write_bytes(data)
    plain.store.capture(plain.resource)

    restored = plain.store.restore(plain.resource, changed.ref)

    assert any("damaged" in note for note in restored.notes)
    plain.store.restore(plain.resource, plain.first.ref)
    assert file.read_bytes() == data
