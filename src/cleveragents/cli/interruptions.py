"""Owns what a signal means while a command works: Ctrl-C, a polite kill and a closed terminal."""

import signal
from types import FrameType

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heed_interruptions() -> None:
    """All of them are an interruption like Ctrl-C: the running step is undone, the lock let go."""
    for number in _INTERRUPTIONS:
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Once is enough: a second Ctrl-C must not cut the undoing of the running step short.
    for number in _INTERRUPTIONS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
