"""The supervisor's own work, done here: waiting, counting, ending, and reading what it reports."""

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Generator

import pytest

from cleveragents.domain.confinement import Confinement, ConfinementMeans, ConfinementMode
from cleveragents.infrastructure.confinement.bubblewrap import wrapped
from cleveragents.infrastructure.confinement.places import Places
from cleveragents.infrastructure.confinement.syscalls import (
    PR_SET_CHILD_SUBREAPER,
    mount,
    prctl,
    syscall,
    unshare,
)
from cleveragents.infrastructure.processes.denials import (
    denied_hint,
    denied_lines,
    denied_places,
)
from cleveragents.infrastructure.processes.process_tree import descendants
from cleveragents.infrastructure.processes.reports import (
    NotEnded,
    NotHeld,
    NotRun,
    Report,
    read_report,
)
from cleveragents.infrastructure.processes.standstill import Below, resume, suspend

PROGRAM = """
import os, signal, subprocess, sys
from cleveragents.infrastructure.confinement.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from cleveragents.infrastructure.processes.supervisor import watch
prctl(PR_SET_CHILD_SUBREAPER, 1)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP})
clear = lambda: signal.pthread_sigmask(signal.SIG_SETMASK, ())
child = subprocess.Popen(
    ["/bin/sh", "-c", sys.argv[1]], start_new_session=True, preexec_fn=clear
)
print("started", flush=True)
print(watch(child.pid, int(sys.argv[2]), 2).as_bytes().decode())
child.returncode = 0
"""


def kept(script: str, most: int = 100, then: int | None = None) -> Report:
    """What `watch` reports of a shell script; `then` is a signal for the supervisor."""
    supervisor = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, script, str(most)], stdout=subprocess.PIPE
    )
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline() == b"started\n"
    if then is not None:
        time.sleep(0.2)
        supervisor.send_signal(then)
    with supervisor.stdout:
        report = read_report(supervisor.stdout.read())
    supervisor.wait()
    assert isinstance(report, Report)
    return report


def test_it_tells_how_the_command_ended() -> None:
    assert kept("exit 3") == Report(code=3)
    assert kept("kill -9 $$") == Report(code=-9)


def test_what_is_left_is_ended_and_counted() -> None:
    assert kept("sleep 30 & setsid sleep 30 & sleep 0.2; exit 0") == Report(code=0, left=2)


def test_too_many_are_too_many() -> None:
    report = kept("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 30 & done; wait", most=5)
    assert report.too_many
    assert report.left > 5


def test_told_to_stop_it_is_gentle_first() -> None:
    assert kept("trap 'exit 7' TERM; sleep 30 & wait", then=signal.SIGTERM).code == 7


def test_left_alone_it_ends_everything_at_once() -> None:
    started = time.monotonic()
    assert kept("trap '' TERM; sleep 30; sleep 30", then=signal.SIGHUP).code == -9
    assert time.monotonic() - started < 10


UNENDABLE = """
import os, time
from cleveragents.infrastructure.processes.process_tree import end_descendants
if os.fork() == 0:
    os.setsid()
    time.sleep(1)
    os._exit(0)
time.sleep(0.2)
os.setuid(65534)
began = time.monotonic()
left = end_descendants(0.1, lambda: print("not yet", flush=True))
print(left, time.monotonic() - began > 0.5)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs somebody who has more rights")
def test_who_cannot_be_ended_is_told_of_once_and_waited_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNENDABLE], capture_output=True, text=True, check=True
    )
    assert done.stdout == "not yet\n1 True\n"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"0 2 1\n", Report(code=0, left=2, too_many=True)),
        (b"!not allowed\n255 0 0\n", NotHeld(reason="not allowed")),
        (b"?2\n-9 0 0\n", NotRun(errno=2)),
        (b"~\n0 0 0\n", NotEnded()),
        (b"", None),
        (b"0 2", None),
    ],
)
def test_reports_are_read(said: bytes, expected: object) -> None:
    assert read_report(said) == expected


@pytest.fixture
def family() -> Generator["subprocess.Popen[bytes]"]:
    parent = subprocess.Popen(["/bin/sh", "-c", "sleep 30 & sleep 30 & wait"])
    while len(descendants(parent.pid)) < 2:
        time.sleep(0.01)
    yield parent
    for process in (*descendants(parent.pid), parent.pid):
        os.kill(process, signal.SIGKILL)
    parent.wait()


def states(parent: int) -> set[str]:
    found: set[str] = set()
    for process in descendants(parent):
        with pathlib.Path(f"/proc/{process}/stat").open() as file:
            found.add(file.read().rpartition(")")[2].split()[0])
    return found


def test_processes_can_be_suspended_and_resumed(family: "subprocess.Popen[bytes]") -> None:
    assert suspend(Below(family.pid))
    assert states(family.pid) == {"T"}
    resume(Below(family.pid))
    time.sleep(0.05)
    assert states(family.pid) == {"S"}


def test_calls_that_the_kernel_refuses_are_errors() -> None:
    assert prctl(PR_SET_CHILD_SUBREAPER, 0) == 0
    with pytest.raises(OSError, match="Invalid argument"):
        prctl(99_999)
    with pytest.raises(OSError, match="Function not implemented"):
        syscall(99_999)
    with pytest.raises(OSError):
        unshare(1)
    with pytest.raises(OSError):
        mount(b"none", b"/no/such/place", 0)


def test_refusals_are_seen_in_the_output() -> None:
    output = "fine\nsh: 1: cannot create /x: Permission denied\nError: EROFS: read-only\nok"
    assert denied_lines(output) == [
        "sh: 1: cannot create /x: Permission denied",
        "Error: EROFS: read-only",
    ]
    assert "no network" in denied_hint(Confinement())
    assert "no network" not in denied_hint(Confinement(network=True))


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("OSError: [Errno 30] Read-only file system: '/h/.aider'", ["/h/.aider"]),
        ("/bin/sh: 1: cannot create /h/.x/y: Read-only file system", ["/h/.x/y"]),
        ("mkdir: cannot create directory ‘/h/a b’: Read-only file system", ["/h/a b"]),
        ("open /h/.x: read-only file system", ["/h/.x"]),
        ("java.io.IOException: /h/.gradle/x.lck (Read-only file system)", ["/h/.gradle/x.lck"]),
        ("EROFS: read-only file system, rename '/h/a' -> '/h/b'", ["/h/a", "/h/b"]),
        ("cp: cannot create '/s/code/x': Permission denied", []),
        ("PermissionError: [Errno 1] Operation not permitted", []),
    ],
)
def test_the_places_that_were_refused_are_read_from_what_a_program_says(
    line: str, places: list[str]
) -> None:
    assert denied_places(denied_lines(line), allowed=["/s/code"]) == places


def test_the_line_for_the_action_file_has_all_that_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/h")
    lines = ["mkdir '/h/.aider': EROFS", "open '/h/.config/a b/c': EROFS", "[Errno 1] EPERM"]
    required = Confinement(mode=ConfinementMode.REQUIRED, by=ConfinementMeans.BUBBLEWRAP)
    assert (
        "`confinement: {mode: required, by: bubblewrap, network: true,"
        ' write: [~/.aider, "~/.config/a b"]}`'
    ) in denied_hint(required, lines)
    for other in ("/h/shop/a.py", "/h", "/h/.cleveragents/x", "/etc/passwd"):
        assert "confinement: {" not in denied_hint(Confinement(), [f"open '{other}': EROFS"])


def test_bubblewrap_gets_the_same_view() -> None:
    places = Places(folder="/s/code", writable=["/s/code", "/t"], closed=["/s/code/x"])
    line = wrapped("/bin/bwrap", ["make"], places, 7)
    assert line[0] == "/bin/bwrap"
    assert line[-2:] == ["--", "make"]
    text = " ".join(line)
    for part in ("--ro-bind / /", "--bind /s/code /s/code", "--bind /t /t", "--seccomp 7"):
        assert part in text
    assert text.index("--ro-bind /s/code/x /s/code/x") > text.index("--bind /t /t")
    assert "--unshare-net" not in wrapped("/bin/bwrap", ["make"], places, None)
