"""Stopping a crowd of processes so that none of them moves, and letting them go on.

In which order: all are told to stop; then each thread of each is looked at; again, until all stand
still. Now and then all are let go on for an instant, so that who is stuck in the middle gets out.
Why: who is in a write ends that first, and may fork before it hears; so only looking can tell.
What is not guaranteed: success. After a while it is given up, and the caller ends them instead.
"""

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Protocol

from cleveragents.infrastructure.processes.process_tree import descendants, threads_of

_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.0005
# A process that waits for its child to become a program of its own (vfork) cannot be stopped
# while that child is: after so long they all may take a step, and are stopped again.
_STEP_AFTER_SECONDS = 0.05
_AT_REST = (b"T", b"t", b"Z", b"X")


class Crowd(Protocol):
    def members(self) -> Collection[int]: ...
    def tell(self, number: signal.Signals) -> None:
        """Send a signal to each of them."""
        ...


class Household:
    """All processes of a process table, seen by its first one: what is sent to all reaches them in
    one go, also those that are being made just now."""

    def members(self) -> Collection[int]:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and name != "1"]

    def tell(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(-1, number)


class Below:
    """All processes below one that adopts orphans, as far as they can be found."""

    def __init__(self, supervisor: int) -> None:
        self._keeper = supervisor

    def members(self) -> Collection[int]:
        return descendants(self._keeper).keys()

    def tell(self, number: signal.Signals) -> None:
        for process in self.members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)


def suspend(crowd: Crowd) -> bool:
    """Whether all of them stand still; they do until they are resumed.

    A signal alone is not enough: who is in the middle of a write ends that first.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    step = time.monotonic() + _STEP_AFTER_SECONDS
    while True:
        crowd.tell(signal.SIGSTOP)
        if all(_is_at_rest(process) for process in crowd.members()):
            return True
        now = time.monotonic()
        if now > deadline:
            return False
        if now > step:
            crowd.tell(signal.SIGCONT)
            step = now + _STEP_AFTER_SECONDS
        time.sleep(_PAUSE_SECONDS)


def resume(crowd: Crowd) -> bool:
    # The youngest first: a shell that goes on before its child would find that stopped, and take
    # it for a job that was put aside.
    for process in sorted(crowd.members(), reverse=True):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGCONT)
    crowd.tell(signal.SIGCONT)
    return True


def _is_at_rest(process: int) -> bool:
    return all(_state(process, thread) in _AT_REST for thread in threads_of(process))


def _state(process: int, thread: str) -> bytes:
    try:
        with open(f"/proc/{process}/task/{thread}/stat", "rb", buffering=0) as file:
            return file.read(512).rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b"X"  # it has ended
