"""What of ours interprets bytes of a step runs held inside, and can write nowhere else."""

import os
import sys
import time
from pathlib import Path

import pytest
from tests.support.runners import SERVER

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import ToolNotStartedError, ToolTimeoutError
from cleveragents.infrastructure.confinement.confiner import Confiner
from cleveragents.infrastructure.processes.own_work import OwnWork, Work


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


@pytest.fixture
def own_work(tmp_path: Path) -> OwnWork:
    return OwnWork(Confiner(environ=dict(os.environ), scratch=str(tmp_path / "scratch")), SERVER)


def shell(folder: Path, command: str, seconds: float = 30) -> Work:
    return Work(
        argv=["/bin/sh", "-c", command],
        folder=str(folder),
        writable=[str(folder)],
        confinement=Confinement(),
        variables={"SAID": "by us"},
        seconds=seconds,
    )


def test_streams_and_exit_code_come_back_whole(own_work: OwnWork, inside: Path) -> None:
    done = own_work.run(
        shell(inside, 'cat; echo "$SAID" >&2; exit 7'), input=bytes(range(256)) * 1000
    )
    assert (done.stdout, done.stderr, done.code) == (bytes(range(256)) * 1000, b"by us\n", 7)


def test_it_writes_where_it_may_and_nowhere_else(
    own_work: OwnWork, inside: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    done = own_work.run(shell(inside, f"echo 1 > here; echo 1 > {outside}/there"))
    assert done.code != 0
    assert (inside / "here").read_text() == "1\n"
    assert list(outside.iterdir()) == []


def test_what_it_leaves_running_is_ended(own_work: OwnWork, inside: Path) -> None:
    own_work.run(shell(inside, "setsid sh -c 'sleep 1; echo late > late' >/dev/null 2>&1 &"))
    time.sleep(1.5)
    assert not (inside / "late").exists()


def test_what_does_not_end_in_time_is_ended(own_work: OwnWork, inside: Path) -> None:
    with pytest.raises(ToolTimeoutError):
        own_work.run(shell(inside, "sleep 60", seconds=0.2))


def test_a_program_that_is_not_there_is_named(own_work: OwnWork, inside: Path) -> None:
    work = Work(
        argv=["/no/such/program"],
        folder=str(inside),
        writable=[str(inside)],
        confinement=Confinement(),
    )
    with pytest.raises(ToolNotStartedError, match="/no/such/program"):
        own_work.run(work)


def test_it_can_be_talked_with(own_work: OwnWork, inside: Path) -> None:
    work = Work(
        argv=[
            sys.executable,
            "-c",
            "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)",
        ],
        folder=str(inside),
        writable=[str(inside)],
        confinement=Confinement(),
    )
    with own_work.started(work) as running:
        talk = running.process
        assert talk.stdin and talk.stdout
        for word in (b"one\n", b"two\n"):
            talk.stdin.write(word)
            talk.stdin.flush()
            assert talk.stdout.readline() == word.upper()
