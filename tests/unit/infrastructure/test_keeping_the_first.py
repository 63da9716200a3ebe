"""The supervisor of a process table of its own waits for the first process in it, or ends it."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, time
from cleveragents.infrastructure.processes.supervisor import keep_first
ours = {signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, ours)
first = os.fork()
if first == 0:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
    if "deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)
    print("started", flush=True)
    time.sleep(0 if "short" in sys.argv else 60)
    os._exit(0)
keep_first(first, 2)
try:
    os.kill(first, 0)
    print("left")
except ProcessLookupError:
    print("gone")
"""


def kept(*manners: str, then: tuple[signal.Signals, ...] = ()) -> str:
    """What is left of a first process with these manners; `then` are signals for the supervisor."""
    argv = [sys.executable, "-c", PROGRAM, *manners]
    supervisor = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline() == "started\n"
    for number in then:
        supervisor.send_signal(number)
    with supervisor.stdout:
        said = supervisor.stdout.read()
    assert supervisor.wait(60) == 0
    return said.strip()


def test_it_waits_for_its_end() -> None:
    assert kept("short") == "gone"


@pytest.mark.parametrize("manners", [(), ("deaf",)], ids=["hears", "deaf"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["stop", "end"])
def test_told_to_end_it_leaves_nothing(number: signal.Signals, manners: tuple[str, ...]) -> None:
    assert kept(*manners, then=(number,)) == "gone"


def test_told_to_end_while_it_is_gentle_it_is_gentle_no_more() -> None:
    assert kept("deaf", then=(signal.SIGTERM, signal.SIGHUP)) == "gone"
