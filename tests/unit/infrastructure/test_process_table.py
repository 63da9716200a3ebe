"""A command with a process table of its own: what it sees, how it ends, and who ends with it."""

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.living import all_gone, living_with
from tests.support.runners import in_folder, runner_with

from cleveragents.domain.errors import ToolError, ToolLimitError, ToolNotEndedError
from cleveragents.infrastructure.confinement.machine import Machine
from cleveragents.infrastructure.processes.reports import GRACE_SECONDS
from cleveragents.infrastructure.processes.runner import Command, ProcessRunner

pytestmark = pytest.mark.skipif(
    not Machine(os.environ["PATH"]).process_table, reason="not allowed on this machine"
)
CHAINS = str(Path(__file__).parents[2] / "support" / "chains.py")
Run = Callable[[str], str]


def runner(processes: int = 200) -> ProcessRunner:
    environ = {"PATH": os.environ["PATH"], "SECRET": "the password"}
    return runner_with(environ, 10_000, processes)


def shell(script: str, folder: Path) -> Command:
    return Command(
        name="shell",
        argv=["/bin/sh", "-c", script],
        folder=str(folder),
        sandboxes={"here": in_folder(folder)},
        timeout=20,
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return lambda script: runner().run(shell(script, tmp_path)).output


@pytest.fixture
def long() -> str:
    return f"60.{uuid.uuid4().int % 10**12}"


def test_it_sees_its_own_processes_and_no_others(run: Run) -> None:
    assert run("echo $$; ls -d /proc/[0-9]*").splitlines()[:2] == ["2", "/proc/1"]
    assert run("ls -d /proc/[0-9]*").split() == ["/proc/1", "/proc/2"]
    assert run("readlink /proc/self /proc/$$/cwd").count("\n") == 2


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 3", 3),
        ("exit 137", 137),
        ("kill -9 $$", -9),
        ("kill -TERM $$", -15),
        ("sh -c 'exit 7'", 7),
        ("sleep 0.1 & exit 5", 5),
    ],
)
def test_the_end_of_the_program_is_told_as_it_was(run: Run, script: str, code: int) -> None:
    with pytest.raises(ToolError, match=f"exit code {code}"):
        run(script)


def test_the_first_process_can_neither_be_ended_nor_looked_into(run: Run) -> None:
    said = run(
        "kill -9 1; kill -STOP 1; kill -TERM 1; kill -INT 1; kill -HUP 1; kill -CHLD 1\n"
        "cat /proc/1/environ /proc/1/maps /proc/1/fd/* 2>&1; ls -l /proc/1/fd 2>&1; sleep 0.2\n"
        "tr '\\0' '\\n' < /proc/$PPID/environ; echo still here"
    )
    assert said.splitlines()[-1] == "still here"
    assert "the password" not in said
    assert "Permission denied" in said


def test_orphans_are_buried(run: Run) -> None:
    script = "for i in 1 2 3 4 5; do (true &); done; sleep 0.3; grep -l '^State:.Z' /proc/*/status"
    assert run(f"{script}; echo none").splitlines() == ["none"]


def test_programs_are_found_and_told_apart_as_ever(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    (tmp_path / "own.sh").write_text("#!/bin/sh\necho mine $1\n")
    (tmp_path / "own.sh").chmod(0o755)

    def tried(*argv: str) -> str:
        command = Command(
            name="own",
            argv=argv,
            folder=str(tmp_path),
            sandboxes={"h": in_folder(tmp_path)},
            timeout=9,
        )
        return runner().run(command).output

    assert tried("./own.sh", "it") == "mine it\n"
    assert tried("echo", "found") == "found\n"
    for argv, why in (
        (("no-such-program",), "No such file"),
        (("./text",), "Exec format"),
        ((".",), "Permission denied"),
    ):
        with pytest.raises(ToolError, match=f"could not be started: {argv[0]}: {why}"):
            tried(*argv)


def test_it_inherits_nothing_of_ours(run: Run) -> None:
    leak, other = os.pipe()
    os.set_inheritable(leak, True)  # noqa: FBT003 - the library takes it so
    try:
        assert run("ls /proc/$$/fd").split() == ["0", "1", "2"]
    finally:
        os.close(leak)
        os.close(other)


def test_too_many_are_ended_in_one_go(tmp_path: Path, long: str) -> None:
    script = f"for i in $(seq 60); do setsid sleep {long} & done; wait"
    with pytest.raises(ToolLimitError, match="more than 30 processes"):
        runner(processes=30).run(shell(script, tmp_path))
    assert living_with(long) == []


# --- suspended ----------------------------------------------------------------------------------


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def test_what_is_suspended_stands_still_whatever_it_is(tmp_path: Path) -> None:
    """Chains of processes, and one that is always about to become another program."""
    busy = "while :; do sh -c 'echo x >> words'; done"
    word = uuid.uuid4().hex
    script = f"{sys.executable} {CHAINS} 10 0 links {word} & {busy}"
    run, command = runner(), shell(script, tmp_path)
    files = [tmp_path / "words", tmp_path / "links"]
    still: list[int] = []
    with run.started(command, run.limits(20)) as running:
        for _ in range(5):
            before = [size(file) for file in files]
            deadline = time.monotonic() + 10
            while [size(file) for file in files] == before and time.monotonic() < deadline:
                time.sleep(0.01)
            running.suspend()
            still = [size(file) for file in files]
            assert still != before
            time.sleep(0.1)
            assert [size(file) for file in files] == still
            running.resume()
        running.suspend()
        running.kill()
        ended = [size(file) for file in files]
        assert ended >= still
    assert living_with(word) == []


def test_who_is_suspended_is_ended_without_being_asked_first(tmp_path: Path) -> None:
    """Being asked takes two seconds. The best of five, as a busy machine takes its time too."""

    def seconds() -> float:
        run = runner()
        with run.started(shell("trap '' TERM; sleep 60", tmp_path), run.limits(20)) as running:
            running.suspend()
            started = time.monotonic()
            running.kill()
            return time.monotonic() - started

    assert any(seconds() < GRACE_SECONDS * 0.75 for _ in range(5))


def test_who_has_ended_can_be_suspended(tmp_path: Path) -> None:
    run = runner()
    with run.started(shell("true", tmp_path), run.limits(20)) as running:
        time.sleep(0.3)
        running.suspend()
        running.resume()


# --- what cannot be made certain ----------------------------------------------------------------


def test_an_end_that_is_not_certain_is_an_error(
    tmp_path: Path, long: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the supervisor does not move. It is not killed: nobody else would end the rest."""
    monkeypatch.setattr("cleveragents.infrastructure.processes.running._PATIENCE_SECONDS", 0.3)
    run = runner()
    with (
        pytest.raises(ToolNotEndedError),
        run.started(shell(f"sleep {long}", tmp_path), run.limits(20)) as running,
    ):
        os.kill(running.process.pid, signal.SIGSTOP)
    assert living_with(long) != []
    os.kill(running.process.pid, signal.SIGCONT)
    assert all_gone(long)


def test_if_the_keeper_is_killed_the_kernel_ends_the_rest(tmp_path: Path, long: str) -> None:
    run = runner()
    with run.started(shell(f"exec env -i sleep {long}", tmp_path), run.limits(20)) as running:
        while not living_with(long):
            time.sleep(0.01)
        running.process.send_signal(signal.SIGKILL)
        assert running.end() is None
    deadline = time.monotonic() + 5
    while living_with(long) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert living_with(long) == []
