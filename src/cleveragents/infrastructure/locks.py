"""Owns the plan locks: kernel locks on files, which end with the process that holds them."""

import fcntl
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager

from cleveragents.application.ports import Clock
from cleveragents.domain.errors import DataDirError, PlanLockedError
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.marked_processes import end_processes, mark_of

_TRIES = 25
_PAUSE_SECONDS = 0.01


class FilePlanLocks:
    """One file per plan. However its owner ends, the kernel lets go, so no plan stays stuck."""

    def __init__(self, folder: str, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    @contextmanager
    def hold(self, plan_id: PlanId, operation: str) -> Generator[None]:
        descriptor = self._open(plan_id)
        try:
            if not _lock_soon(descriptor):
                raise PlanLockedError(plan_id, _owner(descriptor))
            self._take_over(descriptor, plan_id)
            self._sign(descriptor, operation)
            try:
                yield
            finally:
                os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)

    def _take_over(self, descriptor: int, plan_id: PlanId) -> None:
        """A name that is still there is that of an owner who died, maybe in the middle of a step.

        What the step had started would go on writing while we undo and repeat it.
        """
        if os.fstat(descriptor).st_size:
            end_processes(mark_of(plan_id, ""))

    def owner(self, plan_id: PlanId) -> str | None:
        path = os.path.join(self._folder, plan_id)
        if not os.path.exists(path):
            return None
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return None if _try_lock(descriptor, fcntl.LOCK_SH) else _owner(descriptor)
        finally:
            os.close(descriptor)

    def _open(self, plan_id: PlanId) -> int:
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            path = os.path.join(self._folder, plan_id)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirError(self._folder, error.strerror or str(error)) from error

    def _sign(self, descriptor: int, operation: str) -> None:
        """Leave our name for whoever finds the door locked."""
        since = self._clock.now().isoformat(timespec="seconds")
        text = json.dumps({"pid": os.getpid(), "operation": operation, "since": since})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _lock_soon(descriptor: int) -> bool:
    """Whoever only asks for the owner holds the lock for an instant; a writer holds it longer."""
    for _ in range(_TRIES):
        if _try_lock(descriptor, fcntl.LOCK_EX):
            return True
        time.sleep(_PAUSE_SECONDS)
    return False


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(descriptor: int) -> str:
    try:
        signed = json.loads(os.pread(descriptor, 4096, 0))
        return f"`plan {signed['operation']}`, process {signed['pid']}, since {signed['since']}"
    except ValueError:  # it has the lock, and has not signed yet
        return "another process"
