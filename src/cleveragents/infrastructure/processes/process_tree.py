"""The processes below one process: finding them, and ending all of them for good.

For machines on which a step has no process table of its own, which its end would take along.
In which order: who has ended is taken note of; who is there is found; each group is killed; again,
until there is no child left to wait for. Orphans come to us, so that one which was not found this
time is below us the next.
What is not guaranteed: an end. What the kernel does not let go of, such as one that waits for a
dead disk, is told after a while, and waited for.
"""

import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from msgspec import Struct

_PAUSE_SECONDS = 0.0002
_PAUSE_AT_MOST = 0.02
_DEAD = (b"Z", b"X")


class ProcessPlace(Struct, frozen=True):
    """Where a process stands: its parent, its group, and what it is at, as the kernel spells it."""

    parent: int
    group: int
    state: bytes


def descendants(root: int) -> Mapping[int, ProcessPlace]:
    """Those that live; empty where there is no /proc."""
    found: dict[int, ProcessPlace] = {}
    waiting = [root]
    while waiting:
        below = _children(waiting.pop())
        if below is None:
            return _descendants_of_all(root)
        for process in below:
            place = None if process in found else place_of(process)
            if place is not None:
                found[process] = place
                waiting.append(process)
    return found


def end_descendants(patience: float, say_so: Callable[[], object]) -> int:
    """Kill all that is below this process, which adopts orphans; gives back how many it were.

    There is an end only when there is nothing left to wait for: when patience runs out that is
    said, and no more, since what is left could still write. Group by group: a group is killed in
    one go, before any of it can fork once more. And again at once: who is gone as soon as its
    child is there is found only by one who looks all the time.
    """
    ended: set[int] = set()
    pause = _PAUSE_SECONDS
    deadline = time.monotonic() + patience
    while _reap():
        if time.monotonic() > deadline:
            say_so()
            deadline = math.inf
        found = descendants(os.getpid())
        for group in {place.group for place in found.values()} - {os.getpgrp()}:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        fresh = found.keys() - ended
        ended |= fresh
        pause = _PAUSE_SECONDS if fresh else min(2 * pause, _PAUSE_AT_MOST)
        if not fresh:
            time.sleep(pause)
    return len(ended)


def exit_code_of(child: int) -> int | None:
    """Take note of every child that has ended; the exit code of `child` if it is among them."""
    code: int | None = None
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if process == 0:
            return code
        if process == child:
            code = os.waitstatus_to_exitcode(status)


def place_of(process: int) -> ProcessPlace | None:
    """None if there is no such process, or it has ended."""
    try:
        with open(f"/proc/{process}/stat", "rb", buffering=0) as file:
            # The name of the program is in brackets, and may hold anything.
            state, parent, group = file.read(512).rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return None if state in _DEAD else ProcessPlace(int(parent), int(group), state)


def threads_of(process: int) -> Iterable[str]:
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:
        return ()


def _children(process: int) -> list[int] | None:
    """As the kernel has listed them, thread by thread; None if it keeps no such lists."""
    found: list[int] = []
    for thread in threads_of(process):
        try:
            with open(f"/proc/{process}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
        except FileNotFoundError:
            if os.path.exists(f"/proc/{process}/task/{thread}"):
                return None
        except (OSError, ValueError):
            continue
    return found


def _descendants_of_all(root: int) -> Mapping[int, ProcessPlace]:
    places = _living()
    children: dict[int, list[int]] = {}
    for process, place in places.items():
        children.setdefault(place.parent, []).append(process)
    found: dict[int, ProcessPlace] = {}
    waiting = [root]
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), []) if pid not in found]
        found.update((pid, places[pid]) for pid in below)
        waiting.extend(below)
    return found


def _living() -> Mapping[int, ProcessPlace]:
    if not os.path.isdir("/proc"):
        return {}
    known = {int(name): place_of(int(name)) for name in os.listdir("/proc") if name.isdecimal()}
    return {process: place for process, place in known.items() if place is not None}


def _reap() -> bool:
    """Take note of every child that has ended; whether there are others."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
        except ChildProcessError:
            return False
