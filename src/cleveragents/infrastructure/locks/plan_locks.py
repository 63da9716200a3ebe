"""The plan locks: kernel locks on files that say who has them (ADR 0017).

In which order: the kernel's lock; our name in the file; signs of life; the lease, which the next
transaction raises; if the one before us died, the end of what it had started. Back in reverse.
Why: an empty file that is locked is ours without a question. A name in it needs the guard, which
one process has at a time: between looking and signing nobody else may come to the same answer. An
owner that is far, and silent for too long, is not waited for: a new file takes the place of its
own, which it sees with its next sign of life, and stops at once.
What is not guaranteed: that it stops before we begin. Until then it may change files; the record it
cannot write any more (`database/fence.py`).
"""

import fcntl
import os
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from cleveragents.domain.errors import (
    DataDirError,
    InvalidIdError,
    PlanLockedError,
    ToolNotEndedError,
)
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.locks.heartbeats import BEAT_SECONDS, Heartbeats, HeldLock
from cleveragents.infrastructure.locks.lock_owners import (
    LockOwner,
    LockState,
    LockTurn,
    find,
    is_stopped,
    ourselves,
    read_owner,
    whose_turn,
)
from cleveragents.infrastructure.processes.marked import end_processes, mark_of

if TYPE_CHECKING:
    from cleveragents.application.ports.database import Leases
    from cleveragents.application.ports.runtime import Clock

EXPIRY_SECONDS = 60.0
"""After this long without a sign of life an owner on another machine is taken for dead."""
STOP_SECONDS = 60.0
_TRIES = 25
_PAUSE_SECONDS = 0.01
_QUIET_BEATS = 3
_GUARD = ".guard"
_PROBE = ".now"


class FilePlanLocks:
    """One file per plan. However its owner ends, the kernel lets go, so no plan stays stuck."""

    def __init__(
        self,
        folder: str,
        clock: "Clock",
        leases: "Leases",
        *,
        beat: float = BEAT_SECONDS,
        expiry: float = EXPIRY_SECONDS,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._leases = leases
        self._beat = beat
        self._expiry = expiry
        self._heartbeats = Heartbeats(_stop_at_once, beat)

    @contextmanager
    def hold(self, plan_id: PlanId, operation: str) -> Generator[None]:
        since = self._clock.now().isoformat(timespec="milliseconds")
        taken = self._take(plan_id, ourselves(operation, since))
        with ExitStack() as letting_go:
            letting_go.callback(os.close, taken.held.descriptor)
            letting_go.callback(os.ftruncate, taken.held.descriptor, 0)
            letting_go.callback(self._heartbeats.start(taken.held))
            letting_go.enter_context(self._leases.held(plan_id))
            # Its owner died, maybe in the middle of a step. What that had started would go on
            # writing while we undo and repeat it.
            if taken.over and not end_processes(mark_of(plan_id, "")):
                raise ToolNotEndedError("the last run of this plan")
            yield

    def stop_owner(self, plan_id: PlanId) -> None:
        """By SIGTERM, which undoes the running step; only for what takes it so: `plan execute`."""
        asked = False
        deadline = time.monotonic() + STOP_SECONDS
        while (found := self._holder(plan_id)) is not None:
            owner = found.owner
            if owner is not None and not _takes_signals(found, owner):
                return
            if time.monotonic() > deadline:
                raise PlanLockedError(plan_id, self._in_words(found), self._advice(found))
            if owner is not None and not asked:
                import signal  # noqa: PLC0415 - who only asks who has a lock sends none

                asked = True
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(owner.pid, signal.SIGTERM)
            time.sleep(_PAUSE_SECONDS)

    def owner(self, plan_id: PlanId) -> str | None:
        found = self._holder(plan_id)
        return None if found is None else self._in_words(found)

    def _holder(self, plan_id: PlanId) -> LockState | None:
        """Leaves no trace, so that the last sign of life is only as old as our clock says."""
        try:
            descriptor = os.open(self._path(plan_id), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            found = self._look(descriptor, self._clock.now().timestamp(), fcntl.LOCK_SH)
            return found if whose_turn(found, self._expiry) is LockTurn.WAIT else None
        finally:
            os.close(descriptor)

    def is_busy(self) -> bool:
        """Whether anybody works on any plan, as far as can be told."""
        return any(self._holder(plan_id) is not None for plan_id in self.known())

    def dead(self) -> Mapping[PlanId, str]:
        """The locks that somebody left behind by dying, with who that was."""
        found: dict[PlanId, str] = {}
        for plan_id in self.known():
            with opened(self._path(plan_id), os.O_RDWR | os.O_CLOEXEC) as descriptor:
                seen = self._look(descriptor, self._clock.now().timestamp(), fcntl.LOCK_SH)
                if seen.owner is not None and whose_turn(seen, self._expiry) is not LockTurn.WAIT:
                    found[plan_id] = self._in_words(seen)
        return found

    def forget(self, plan_id: PlanId) -> None:
        path = self._path(plan_id)
        with suppress(FileNotFoundError), opened(path, os.O_RDWR | os.O_CLOEXEC) as descriptor:
            found = self._look(descriptor, self._now(), fcntl.LOCK_EX)
            # Whoever has opened it meanwhile finds it at its place no more, and makes another.
            if whose_turn(found, self._expiry) is not LockTurn.WAIT:
                os.unlink(path)

    # --- taking ---------------------------------------------------------------------------------

    def _take(self, plan_id: PlanId, owner: LockOwner) -> "_Taken":
        """Raises PlanLockedError."""
        for _ in range(_TRIES):
            descriptor = self._open(plan_id)
            with _closed_on_error(descriptor):
                locked = _try_lock(descriptor, fcntl.LOCK_EX) and self._is_at(plan_id, descriptor)
                if locked and not os.fstat(descriptor).st_size:
                    return self._signed(plan_id, descriptor, owner, over=False)
            os.close(descriptor)
            if locked:
                break  # somebody's name is in it
            # Whoever only asks for the owner holds the lock for an instant; a writer longer.
            time.sleep(_PAUSE_SECONDS)
        with self._guard():
            return self._take_over(plan_id, owner)

    def _take_over(self, plan_id: PlanId, owner: LockOwner) -> "_Taken":
        """From somebody who is dead, or far and silent, and whose name is still there.

        One process at a time, from looking until signing: the name of a dead owner in a file that
        is locked would otherwise be taken for one whose children keep it locked.
        """
        descriptor = self._open(plan_id)
        with _closed_on_error(descriptor):
            found = self._look(descriptor, self._now(), fcntl.LOCK_EX)
            turn = whose_turn(found, self._expiry)
            if turn is LockTurn.WAIT or not self._is_at(plan_id, descriptor):
                raise PlanLockedError(plan_id, self._in_words(found), self._advice(found))
            if turn is LockTurn.TAKE:
                return self._signed(plan_id, descriptor, owner, over=found.owner is not None)
            taken = self._new_file(plan_id, owner)
        os.close(descriptor)
        return taken

    def _new_file(self, plan_id: PlanId, owner: LockOwner) -> "_Taken":
        """In the place of the old one: what a dead owner's children hold is then nobody's, and an
        owner that was not dead finds out with its next sign of life."""
        draft = f"{self._path(plan_id)}.new"
        with suppress(FileNotFoundError):
            os.unlink(draft)
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with _closed_on_error(descriptor):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = self._signed(plan_id, descriptor, owner, over=True)
            os.rename(draft, self._path(plan_id))
            return taken

    def _signed(
        self, plan_id: PlanId, descriptor: int, owner: LockOwner, *, over: bool
    ) -> "_Taken":
        os.pwrite(descriptor, owner.to_bytes(), 0)
        held = HeldLock(path=self._path(plan_id), descriptor=descriptor, owner=owner)
        return _Taken(held=held, over=over)

    @contextmanager
    def _guard(self) -> Generator[None]:
        path = os.path.join(self._folder, _GUARD)
        with opened(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield

    # --- looking --------------------------------------------------------------------------------

    def _look(self, descriptor: int, now: float, kind: int) -> LockState:
        held = not _try_lock(descriptor, kind)
        silence = max(0.0, now - os.fstat(descriptor).st_mtime)
        return find(read_owner(descriptor), held=held, silence=silence)

    def _now(self) -> float:
        """By the clock of whoever keeps the files, which is the one that the signs are dated by."""
        path = os.path.join(self._folder, _PROBE)
        with opened(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) as descriptor:
            os.pwrite(descriptor, b"\n", 0)
            return os.fstat(descriptor).st_mtime

    def _is_at(self, plan_id: PlanId, descriptor: int) -> bool:
        """Whether the file we have open still is the plan's lock file."""
        try:
            return os.path.samestat(os.stat(self._path(plan_id)), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def _in_words(self, found: LockState) -> str:
        owner = found.owner
        if owner is None:  # it has the lock, and has not signed yet
            return "another process"
        where = "" if found.same_host else f" on {owner.host}"
        heard = f"last heard of {found.silence:.0f} s ago"
        what = f"`plan {owner.operation}`, process {owner.pid}{where}"
        return f"{what}, since {owner.since}, {heard}{self._state(found, owner)}"

    def _state(self, found: LockState, owner: LockOwner) -> str:
        return ", and stopped" if found.alive and is_stopped(owner) else ""

    def _advice(self, found: LockState) -> str:
        owner = found.owner
        if owner is None:
            return ""
        if found.alive and is_stopped(owner):
            pid = owner.pid
            return f"continue it with `kill -CONT {pid}`, or end it with `kill -9 {pid}`"
        if found.silence <= self._beat * _QUIET_BEATS:
            return ""
        if not found.alive:
            left = max(1.0, self._expiry - found.silence)
            return f"if {owner.host} is gone, try again in {left:.0f} s"
        return f"if it hangs, end it with `kill {owner.pid}`; the plan can be resumed then"

    def known(self) -> list[PlanId]:
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return []
        found: list[PlanId] = []
        for name in names:
            with suppress(InvalidIdError):
                found.append(PlanId(name))
        return found

    def _open(self, plan_id: PlanId) -> int:
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            return os.open(self._path(plan_id), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirError(self._folder, error.strerror or str(error)) from error

    def _path(self, plan_id: PlanId) -> str:
        return os.path.join(self._folder, plan_id)


def _takes_signals(found: LockState, owner: LockOwner) -> bool:
    return owner.operation == "execute" and bool(found.alive) and owner.pid != os.getpid()


class _Taken(Struct, frozen=True, kw_only=True):
    """`over`: from somebody who died with it."""

    held: HeldLock
    over: bool


@contextmanager
def _closed_on_error(descriptor: int) -> Generator[None]:
    try:
        yield
    except BaseException:
        os.close(descriptor)
        raise


def _stop_at_once(path: str, by: LockOwner | None) -> None:
    """We were taken for dead, and somebody else works on the plan: as good as killed.

    Nothing is tidied up, for it is not ours any more; like every kill this loses nothing.
    """
    who = f"process {by.pid} on {by.host}" if by is not None else "somebody else"
    text = f"error: {who} has taken over {os.path.basename(path)}: this process was silent too long"
    with suppress(OSError):
        os.write(2, f"{text}, and stops now\n".encode())
    end_processes(mark_of(os.path.basename(path), ""))
    os._exit(1)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
