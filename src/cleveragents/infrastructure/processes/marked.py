"""Finding the processes that a plan's steps have started, wherever these have moved to.

Each carries a mark in its environment, which it passes on to whatever it starts; a session or
process group of its own does not take that away.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress

MARK = "CLEVERAGENTS_STEP"
_TRIES = 500
_PAUSE_SECONDS = 0.01


def mark_of(plan_id: str, call: str) -> str:
    return f"{plan_id}:{call}"


def end_processes(mark: str) -> bool:
    """Kill every process whose mark begins with `mark`; whether they are gone in the end."""
    for _ in range(_TRIES):
        found = list(_marked(f"{MARK}={mark}".encode()))
        if not found:
            return True
        for process_id in found:
            _kill(process_id)
        time.sleep(_PAUSE_SECONDS)
    return False


def marked_processes(mark: str) -> list[str]:
    """Those whose mark begins with `mark`, each by its number and what it is called."""
    return [told(process) for process in _marked(f"{MARK}={mark}".encode())]


def told(process: int) -> str:
    """By its number and what it is called, for people."""
    return f"{process} ({_name(process)})"


def _name(process: int) -> str:
    with suppress(OSError), open(f"/proc/{process}/comm", encoding="utf-8") as file:
        return file.read().strip()
    return "ended"


def _marked(wanted: bytes) -> Iterable[int]:
    """Empty where there is no /proc: there only the process group of a step is ended."""
    if not os.path.isdir("/proc"):
        return
    ourselves = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != ourselves and _carries(name, wanted):
            yield int(name)


def _carries(process: str, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return any(variable.startswith(wanted) for variable in file.read().split(b"\0"))
    except OSError:  # it ended, or belongs to somebody else
        return False


def _kill(process_id: int) -> None:
    import signal  # noqa: PLC0415 - who only asks who has a lock kills nobody

    with suppress(ProcessLookupError, PermissionError):
        os.kill(process_id, signal.SIGKILL)
