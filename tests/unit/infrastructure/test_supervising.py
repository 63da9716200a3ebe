"""What a supervisor does where the machine tells it less, or where something does not end."""

import builtins
import errno
import os
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import ToolLimitError, ToolNotStartedError
from cleveragents.infrastructure.processes import own_work, process_tree, supervisor
from cleveragents.infrastructure.processes.first_process import close_all_but
from cleveragents.infrastructure.processes.forking.served_process import ServedProcess
from cleveragents.infrastructure.processes.own_work import Work
from cleveragents.infrastructure.processes.process_tree import descendants, threads_of
from cleveragents.infrastructure.processes.reports import END, STOP, NotEnded, NotRun, Report

NOBODY = 2**22 + 1  # there is no higher number of a process than 2**22


def test_only_the_files_that_were_named_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: set[int] = set()
    monkeypatch.setattr(os, "closerange", lambda low, high: closed.update(range(low, high)))
    close_all_but(7, 3, 4)
    assert set(range(20)) - closed == {3, 4, 7}
    assert max(closed) == os.sysconf("SC_OPEN_MAX") - 1


# --- the machine tells less ---------------------------------------------------------------------


def test_without_a_count_of_the_machine_its_own_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> BytesIO:
        return BytesIO(b"0.1 0.2 0.3")  # cut short

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "open", refuse)
        assert supervisor._threads_of_machine() == 0
    assert supervisor._threads_of_machine() > 0


def test_without_a_wait_that_ends_a_signal_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "sigtimedwait")
    monkeypatch.setattr(signal, "sigpending", set[signal.Signals])
    assert supervisor._next_signal(0.0) is None
    monkeypatch.setattr(signal, "sigpending", lambda: {STOP, signal.SIGCHLD})
    assert supervisor._next_signal(0.0) == STOP
    monkeypatch.setattr(signal, "sigpending", lambda: {END})
    assert supervisor._next_signal(0.0) == END


def test_a_child_that_somebody_else_has_waited_for_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert supervisor._has_ended(child.pid) is True


def test_one_that_does_not_end_when_asked_gets_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(supervisor, "GRACE_SECONDS", 0.03)
    monkeypatch.setattr(supervisor, "exit_code_of", lambda _child: None)
    monkeypatch.setattr(os, "killpg", lambda group, number: told.append((group, number)))
    assert supervisor._stopped_gently(NOBODY) is None
    assert told == [(NOBODY, signal.SIGTERM)]


def test_one_that_not_even_a_kill_ends_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([False, False, False, True])
    monkeypatch.setattr(supervisor, "_PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(supervisor, "_has_ended", lambda _first: next(looks))
    monkeypatch.setattr(supervisor, "_next_signal", lambda _seconds: None)
    reading, writing = os.pipe()
    supervisor._end_for_certain(NOBODY, writing)
    os.close(writing)
    assert os.read(reading, 64) == NotEnded().as_bytes()
    os.close(reading)


def test_why_a_program_did_not_run_is_told_by_number() -> None:
    gone = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    assert supervisor._not_run(gone) == NotRun(errno=errno.ENOENT)
    assert supervisor._not_run(OSError("in words")) == NotRun(errno=0)


def test_where_the_kernel_lists_no_children_they_are_looked_for_among_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.open

    def without_lists(path: Any, *args: Any, **options: Any) -> Any:
        if str(path).endswith("/children"):
            raise FileNotFoundError(path)
        return real(path, *args, **options)

    child = subprocess.Popen(["sleep", "60"])
    try:
        with monkeypatch.context() as patched:
            patched.setattr(builtins, "open", without_lists)
            assert process_tree._children(os.getpid()) is None
            assert child.pid in descendants(os.getpid())
            patched.setattr(process_tree, "threads_of", lambda _process: ("0",))
            assert process_tree._children(NOBODY) == []  # its threads have ended meanwhile
        assert child.pid in descendants(os.getpid())
    finally:
        child.kill()
        child.wait()


def test_lists_that_cannot_be_read_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "open", lambda *_: BytesIO(b"no number"))
    monkeypatch.setattr(process_tree, "threads_of", lambda _process: ("1",))
    assert process_tree._children(os.getpid()) == []


def test_without_processes_to_look_at_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isdir", lambda _path: False)
    assert process_tree._living() == {}
    assert list(threads_of(NOBODY)) == []


# --- how work of our own ended -------------------------------------------------------------------


def test_work_that_was_killed_or_ran_wild_is_refused(tmp_path: Path) -> None:
    folder = str(tmp_path)
    work = Work(argv=["git", "gc"], folder=folder, writable=(), confinement=Confinement())
    assert own_work._whole(work, Report(code=3)) == Report(code=3)
    with pytest.raises(ToolNotStartedError, match="git was killed from outside"):
        own_work._whole(work, None)
    with pytest.raises(ToolLimitError, match="too many processes"):
        own_work._whole(work, Report(code=0, too_many=True))


# --- talking to one that is no child of ours -----------------------------------------------------


def _served(script: str, *, stdin: bool) -> tuple["subprocess.Popen[bytes]", ServedProcess]:
    pipe = subprocess.PIPE
    argv = ["sh", "-c", script]
    child = subprocess.Popen(argv, stdin=pipe if stdin else None, stdout=pipe, stderr=pipe)
    found = {0: child.stdin, 1: child.stdout, 2: child.stderr}
    streams = {number: stream for number, stream in found.items() if stream is not None}
    return child, ServedProcess(child.pid, os.pidfd_open(child.pid), streams)


@pytest.mark.parametrize("stdin", [True, False])
def test_all_it_prints_is_heard_also_if_it_wants_no_input(*, stdin: bool) -> None:
    child, served = _served("exec <&-; echo out; echo err >&2", stdin=stdin)
    heard = served.communicate(b"x" * 2**20 if stdin else None, timeout=60)
    assert heard == (b"out\n", b"err\n")
    served.release()
    assert child.wait() == 0


def test_one_that_goes_on_for_too_long_is_told_of() -> None:
    child, served = _served("exec sleep 60", stdin=False)
    with pytest.raises(subprocess.TimeoutExpired):
        served.communicate(timeout=0.05)
    served.send_signal(signal.SIGKILL)
    assert served.wait() == 0
    assert child.wait() == -signal.SIGKILL
    served.send_signal(signal.SIGKILL)  # nobody is there any more
    served.release()
    for stream in (child.stdout, child.stderr):
        assert stream is not None
        stream.close()
