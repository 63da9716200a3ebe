"""The signs of life of the locks we hold, and what happens if one of them is not ours.

In which order, at every beat: who is named where the lock is; only if that is us, the sign. So a
process that was taken for dead never writes over the name of the one that took over; it is told,
and ends (`plan_locks._stop_at_once`).
What is not guaranteed: a sign at every beat. A full disk or a stopped process gives none, and one
on another machine or in another container may then be taken for dead; one that we can see never is.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.infrastructure.locks.lock_owners import LockOwner, read_owner

BEAT_SECONDS = 2.0


class HeldLock(Struct):
    """One lock file of ours, open."""

    path: str
    descriptor: int
    owner: LockOwner


class Heartbeats:
    """One thread for all locks of the process, which lives as long as there are any."""

    def __init__(
        self, overtaken: Callable[[str, LockOwner | None], None], seconds: float = BEAT_SECONDS
    ) -> None:
        self._overtaken = overtaken
        self._seconds = seconds
        self._held: list[HeldLock] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._running = False

    def start(self, held: HeldLock) -> Callable[[], None]:
        """Give signs of life from now on, until what this gives back is called."""
        with self._lock:
            self._held.append(held)
            if not self._running:
                self._begin(held)
        return lambda: self._stop(held)

    def _begin(self, held: HeldLock) -> None:
        try:
            threading.Thread(target=self._run, name="plan-locks", daemon=True).start()
        except RuntimeError:  # there can be no more threads, so nobody would give signs
            self._held.remove(held)
            raise
        self._running = True

    def _stop(self, held: HeldLock) -> None:
        # After this no sign is written any more: the file may be free, or somebody else's.
        with self._lock:
            self._held.remove(held)
            self._changed.notify()

    def _run(self) -> None:
        with self._lock:
            while self._held:
                self._changed.wait(self._seconds)
                for held in self._held:
                    self._beat(held)
            self._running = False

    def _beat(self, held: HeldLock) -> None:
        found = _owner_at(held.path, held.descriptor)
        if not held.owner.is_same(found):
            self._overtaken(held.path, found)
            return
        held.owner = replace(held.owner, beat=held.owner.beat + 1)
        with suppress(OSError):  # a full disk takes no lock away; the next sign may get through
            os.pwrite(held.descriptor, held.owner.to_bytes(), 0)


def _owner_at(path: str, ours: int) -> LockOwner | None:
    """Who is named where the lock is: that may be another file than the one we have open."""
    try:
        if os.path.samestat(os.stat(path), os.fstat(ours)):
            return read_owner(ours)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return read_owner(descriptor)
    finally:
        os.close(descriptor)
