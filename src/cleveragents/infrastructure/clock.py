"""Real time, and the ids made from it."""

import os
import threading
import time
from datetime import UTC, datetime

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


def machine_started_ns() -> int:
    """When the machine was started, by the present clock: nobody lives who made anything before."""
    return time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class UlidSource:
    """ULIDs that only go up within a process, also when the clock stands still or goes back."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def new(self) -> str:
        milliseconds = time.time_ns() // 1_000_000
        fresh = (milliseconds << _RANDOM_BITS) | int.from_bytes(os.urandom(_RANDOM_BITS // 8))
        with self._lock:
            self._last = value = max(fresh, self._last + 1)
        return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
