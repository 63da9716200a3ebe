"""Owns the processes below one process: finding them, and ending all of them for good."""

import os
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process stands: its parent, and its group."""

    parent: int
    group: int


def descendants(root: int) -> Mapping[int, Place]:
    """Those that live; empty where there is no /proc."""
    places = _living()
    children: dict[int, list[int]] = {}
    for process, place in places.items():
        children.setdefault(place.parent, []).append(process)
    found: dict[int, Place] = {}
    waiting = [root]
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update((pid, places[pid]) for pid in below)
        waiting.extend(below)
    return found


def end_descendants() -> int:
    """Kill all that is below this process, which adopts orphans; gives back how many it were.

    Group by group: a group is killed in one go, before any of it can fork once more. One by one,
    they could multiply faster than they are killed.
    """
    ended: set[int] = set()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while _reap() and time.monotonic() < deadline:
        found = descendants(os.getpid())
        for group in {place.group for place in found.values()} - {os.getpgrp()}:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        ended |= found.keys()
        time.sleep(_PAUSE_SECONDS)
    return len(ended)


def _reap() -> bool:
    """Take note of every child that has ended; whether there are others."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
        except ChildProcessError:
            return False


def _living() -> Mapping[int, Place]:
    found: dict[int, Place] = {}
    if not os.path.isdir("/proc"):
        return found
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        with suppress(OSError), open(f"/proc/{name}/stat", "rb", buffering=0) as file:
            # The name of the program is in brackets, and may hold anything.
            state, parent, group = file.read(512).rpartition(b")")[2].split()[:3]
            if state not in (b"Z", b"X"):
                found[int(name)] = Place(int(parent), int(group))
    return found


def suspend(keeper: int) -> None:
    """Stop all that is below another process, until it is resumed; what is new meanwhile, too."""
    stopped: set[int] = set()
    while fresh := descendants(keeper).keys() - stopped:
        _signal(fresh, signal.SIGSTOP)
        stopped |= fresh


def resume(keeper: int) -> None:
    _signal(descendants(keeper).keys(), signal.SIGCONT)


def _signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
