"""Bringing processes to a standstill from outside, and what is done about those that do not."""

import os
import signal
import socket
import subprocess
import uuid
from collections.abc import Collection, Generator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.world import wait_for

from cleveragents.domain.errors import ToolLimitError, ToolNotEndedError
from cleveragents.infrastructure.processes import marked, running, standstill
from cleveragents.infrastructure.processes.first_process import NOT_DONE, SUSPEND
from cleveragents.infrastructure.processes.marked import MARK, end_processes, marked_processes
from cleveragents.infrastructure.processes.process_tree import descendants
from cleveragents.infrastructure.processes.reports import NotEnded, Report
from cleveragents.infrastructure.processes.running import Running, told_of_changed
from cleveragents.infrastructure.processes.standstill import Below, Household, resume, suspend

THIS = f"standstill-{uuid.uuid4().hex}"


@pytest.fixture
def keeper() -> Generator["subprocess.Popen[bytes]"]:
    """A shell with a child, which both carry a mark."""
    environ = {**os.environ, MARK: f"{THIS}:1"}
    argv = ["sh", "-c", "sh -c 'sleep 60; :' & wait"]
    shell = subprocess.Popen(argv, start_new_session=True, env=environ)
    wait_for(lambda: len(descendants(shell.pid)) == 2)
    yield shell
    with suppress(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()


@pytest.fixture
def report() -> Generator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def _states(process: int) -> set[str]:
    found: set[str] = set()
    for below in descendants(process):
        found.add(Path(f"/proc/{below}/stat").read_text("utf-8").rpartition(")")[2].split()[0])
    return found


def _running(
    keeper: "subprocess.Popen[bytes]", report: tuple[int, int], first: socket.socket | None = None
) -> Running:
    return Running("tool", f"{THIS}:", keeper, report[0], first)


def test_all_below_stand_still_until_they_are_resumed(
    keeper: "subprocess.Popen[bytes]", report: tuple[int, int]
) -> None:
    one = _running(keeper, report)
    one.suspend()
    assert (one.is_suspended, _states(keeper.pid)) == (True, {"T"})
    one.resume()
    assert not one.is_suspended
    wait_for(lambda: _states(keeper.pid) == {"S"})
    assert one.program() == min(descendants(keeper.pid))


class _Restless:
    """Goes on whatever it is told."""

    def __init__(self) -> None:
        self.told: list[signal.Signals] = []

    def members(self) -> Collection[int]:
        return [os.getpid()]

    def tell(self, number: signal.Signals) -> None:
        self.told.append(number)


def test_who_does_not_stop_may_take_a_step_and_is_given_up_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(standstill, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(standstill, "_STEP_AFTER_SECONDS", 0.01)
    restless = _Restless()
    assert suspend(restless) is False
    assert set(restless.told) == {signal.SIGSTOP, signal.SIGCONT}
    assert restless.told[-1] is signal.SIGSTOP


def test_who_has_ended_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "threads_of", lambda _process: ("1",))
    ended = _Restless()
    monkeypatch.setattr(ended, "members", lambda: [2**22 + 1])
    assert suspend(ended) is True
    assert resume(ended) is True
    assert ended.told == [signal.SIGSTOP, signal.SIGCONT]


def test_a_household_is_everybody_but_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []

    def kill(process: int, number: int) -> None:
        told.append((process, number))
        raise ProcessLookupError  # nobody is there

    monkeypatch.setattr(os, "kill", kill)
    household = Household()
    assert os.getpid() in household.members()
    assert 1 not in household.members()
    household.tell(signal.SIGSTOP)
    assert told == [(-1, signal.SIGSTOP)]


def test_below_nobody_is_nobody() -> None:
    assert not Below(2**22 + 1).members()


# --- what is asked of a first process ------------------------------------------------------------


def test_one_that_cannot_be_stopped_is_ended(
    keeper: "subprocess.Popen[bytes]", report: tuple[int, int]
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(NOT_DONE)
        os.write(report[1], Report(code=-9).as_bytes())
        keeper.kill()
        one = _running(keeper, report, ours)
        with pytest.raises(ToolLimitError, match="standstill"):
            one.suspend()
        assert theirs.recv(1) == SUSPEND
        assert one.end() == Report(code=-9)


def test_one_that_does_not_answer_is_not_stopped(
    keeper: "subprocess.Popen[bytes]", report: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_PATIENCE_SECONDS", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.write(report[1], NotEnded().as_bytes())
        one = _running(keeper, report, ours)
        for _ in range(2):  # what was found stays so
            with pytest.raises(ToolNotEndedError):
                one.suspend()
        assert keeper.poll() is None  # whoever keeps watch goes on


def test_a_supervisor_that_was_killed_leaves_nobody(
    keeper: "subprocess.Popen[bytes]", report: tuple[int, int]
) -> None:
    child = min(descendants(keeper.pid))
    assert f"{child} (sh)" in marked_processes(THIS)
    keeper.kill()
    os.write(report[1], b"cut")
    assert _running(keeper, report).end() is None
    assert marked_processes(THIS) == []


def test_who_cannot_be_ended_is_told_of(
    keeper: "subprocess.Popen[bytes]", report: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marked, "_TRIES", 2)
    monkeypatch.setattr(marked, "_kill", lambda _process: None)
    keeper.kill()
    os.write(report[1], b"cut")
    assert end_processes(THIS) is False
    with pytest.raises(ToolNotEndedError):
        _running(keeper, report).end()


def test_what_has_no_processes_to_look_at_marks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda _path: False)
    assert marked_processes("") == []
    assert end_processes("") is True


def test_folders_that_somebody_else_changed_are_told_in_a_line() -> None:
    assert told_of_changed([]) == ""
    assert told_of_changed(["/a", "/b"]).count("\n") == 2
    assert "/a, /b" in told_of_changed(["/a", "/b"])
