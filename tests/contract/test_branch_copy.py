"""The fast copy of a sandbox: every kind of file, alone and with helper processes at work."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.trees import tree_of

from cleveragents.infrastructure.files.copy import copy_worker as plain_copy
from cleveragents.infrastructure.files.copy import parallel_copy as copy_processes
from cleveragents.infrastructure.files.copy.copy_worker import NUMBER, PlainCopy
from cleveragents.infrastructure.files.copy.parallel_copy import BranchCopy, copy_all

MANY = 600
HOLE = 1 << 20


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """Files of all kinds, and many plain ones in several folders."""
    top = tmp_path / "parent"
    for number in range(MANY):
        file = top / f"d{number % 7}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(number * 11))
        os.utime(file, ns=(number, 1_000_000_000 * number + 123_456_789))
    (top / "nested").mkdir()
    subprocess.run(["git", "-C", str(top / "nested"), "init", "-q"], check=True)
    (top / "empty" / "deep").mkdir(parents=True)
    for mode in (0o600, 0o444, 0o755, 0o4755, 0o000, 0o777):
        file = top / f"mode {mode:o}"
        file.write_text("x")
        file.chmod(mode)
    (top / "none").touch()
    (top / "large").write_bytes(os.urandom(700_000))
    with (top / "holes").open("wb") as file:
        file.truncate(HOLE)
    (top / "dangling").symlink_to("nowhere")
    (top / "to a folder").symlink_to("d0")
    Path(os.fsdecode(os.fsencode(top) + b"/\xff\n")).write_text("a name of bytes")
    (top / "empty").chmod(0o2750)
    return top


def copied(parent: Path, child: Path, hidden: bytes = b"hidden") -> BranchCopy:
    child.mkdir()
    copy = BranchCopy(os.fsencode(parent), os.fsencode(child), frozenset({hidden}))
    copy.run()
    return copy


def jobs_of(parent: Path) -> list[plain_copy.Job]:
    folders = sorted(p for p in parent.iterdir() if p.name.startswith("d") and p.is_dir())
    return [(os.fsencode(f.name), [os.fsencode(n.name) for n in f.iterdir()]) for f in folders]


@pytest.mark.parametrize("enough", [copy_processes.ENOUGH, 20])
def test_a_copy_is_exact_and_every_path_of_it_is_marked(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enough: int
) -> None:
    monkeypatch.setattr(copy_processes, "ENOUGH", enough)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    child = tmp_path / "child"
    marks = copied(parent, child).marks

    assert tree_of(child) == tree_of(parent)
    paths = [os.fsencode(p) for p in parent.rglob("*")]
    assert set(marks) == {os.path.relpath(p, os.fsencode(parent)) for p in paths}
    for path, told in marks.items():
        one = os.lstat(parent / os.fsdecode(path))
        two = os.lstat(child / os.fsdecode(path))
        assert two.st_mtime_ns == one.st_mtime_ns
        assert told[3:6] == (one.st_ctime_ns, one.st_ino, one.st_dev)
        assert told[6:9] == (two.st_ctime_ns, two.st_ino, two.st_dev)
    assert (child / "holes").stat().st_blocks * 512 < HOLE
    (child / "d0" / "f0").write_text("only in the child")
    assert (parent / "d0" / "f0").read_bytes() == b""


def test_what_belongs_to_somebody_else_still_does(parent: Path, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(parent / "mode 4755", 1234, 4321)
    (parent / "mode 4755").chmod(0o4755)
    copied(parent, tmp_path / "child")
    made = (tmp_path / "child" / "mode 4755").stat()
    assert (made.st_uid, made.st_gid, made.st_mode & 0o7777) == (1234, 4321, 0o4755)


def test_a_helper_by_itself_does_all_that_nobody_else_takes(parent: Path, tmp_path: Path) -> None:
    child, jobs = tmp_path / "child", jobs_of(parent)
    for folder, _ in jobs:
        (child / os.fsdecode(folder)).mkdir(parents=True)
    plain = PlainCopy(os.fsencode(parent), os.fsencode(child), 0o7022)
    with (
        copy_processes._numbers(len(jobs)) as numbers,
        copy_processes._helpers(1, plain, jobs, numbers) as helpers,
    ):
        done = copy_processes._answer(helpers[0])

    assert sorted(number for number, _, _ in done) == list(range(len(jobs)))
    assert sum(len(rows) for _, rows, _ in done) == MANY
    for folder, _ in jobs:
        assert tree_of(child / os.fsdecode(folder)) == tree_of(parent / os.fsdecode(folder))


def test_a_helper_whose_starter_is_gone_takes_no_more(tmp_path: Path) -> None:
    with copy_processes._numbers(1) as numbers:
        plain = PlainCopy(os.fsencode(tmp_path), os.fsencode(tmp_path), 0)
        assert plain.run([(b"", [])], numbers, for_process=1 << 30) == []
        assert os.read(numbers, NUMBER)


@pytest.mark.parametrize("program", ["/bin/false", "/bin/true", "/no/such/program"])
def test_a_helper_that_fails_is_an_error_of_the_copy(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(copy_processes, "ENOUGH", 20)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(OSError):
        copied(parent, tmp_path / "child")


def test_jobs_that_a_helper_took_and_did_not_do_are_an_error(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thief = tmp_path / "thief.py"
    thief.write_text(
        "import marshal, os, sys\n"
        "os.read(marshal.loads(os.pread(0, 1 << 24, 0))[3], 4)\n"
        "marshal.dump([], sys.stdout.buffer)\n"
    )
    monkeypatch.setattr(plain_copy, "__file__", str(thief))
    monkeypatch.setattr(copy_processes, "ENOUGH", 20)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    real = PlainCopy.run

    def late(self: PlainCopy, *args: object, **more: object) -> object:
        time.sleep(0.5)
        return real(self, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(PlainCopy, "run", late)
    with pytest.raises(OSError, match="before its end"):
        copied(parent, tmp_path / "child")


def test_a_file_that_shrinks_while_it_is_copied_is_an_error(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: real(fd, size)[:-1])
    child = tmp_path / "child"
    (child / "d1").mkdir(parents=True)
    plain = PlainCopy(os.fsencode(parent), os.fsencode(child), 0)
    plain._shares = False
    with pytest.raises(OSError, match="differs"):
        plain.copy((b"d1", [b"f1"]))


def test_more_jobs_than_fit_into_a_pipe_are_done_alone(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_processes, "ENOUGH", 20)
    monkeypatch.setattr(copy_processes, "_PIPE", 2)
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    child, jobs = tmp_path / "child", jobs_of(parent)
    for folder, _ in jobs:
        (child / os.fsdecode(folder)).mkdir(parents=True)
    done = copy_all(PlainCopy(os.fsencode(parent), os.fsencode(child), 0o7022), jobs)
    assert len(done) == len(jobs)
