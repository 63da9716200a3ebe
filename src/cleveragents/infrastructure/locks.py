"""Owns the plan locks: kernel locks on files, which end with the process that holds them."""

import fcntl
import json
import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from cleveragents.application.ports import Clock
from cleveragents.domain.errors import DataDirError, PlanLockedError
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.marked_processes import end_processes, mark_of

STOP_SECONDS = 60.0
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

    def stop_owner(self, plan_id: PlanId) -> None:
        """By SIGTERM, which undoes the running step; only for what takes it so: `plan execute`."""
        asked = False
        deadline = time.monotonic() + STOP_SECONDS
        while (signed := self._signed(plan_id)) is not None:
            if signed.get("operation") != "execute" or signed.get("pid") == os.getpid():
                return
            if time.monotonic() > deadline:
                raise PlanLockedError(plan_id, _in_words(signed))
            if not asked and signed.get("pid"):
                asked = True
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(signed["pid"], signal.SIGTERM)
            time.sleep(_PAUSE_SECONDS)

    def _signed(self, plan_id: PlanId) -> dict[str, Any] | None:
        """What the holder of the lock says about itself; None if nobody holds it."""
        try:
            descriptor = os.open(os.path.join(self._folder, plan_id), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if _try_lock(descriptor, fcntl.LOCK_SH):
                return None
            return json.loads(os.pread(descriptor, 4096, 0) or b"{}")
        except ValueError:  # it is signing just now
            return {"operation": "execute"}
        finally:
            os.close(descriptor)

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
        return _in_words(json.loads(os.pread(descriptor, 4096, 0)))
    except ValueError:  # it has the lock, and has not signed yet
        return "another process"


def _in_words(signed: dict[str, Any]) -> str:
    return f"`plan {signed['operation']}`, process {signed['pid']}, since {signed['since']}"
