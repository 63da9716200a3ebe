"""Clock, ids, events and locks in memory, with one place through which faults come in.

`Faults.reach` is called at each port call. It can kill the "process" there: from then on nothing
that it tries has any effect, as after a power cut, and only what was committed or written is left.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from cleveragents.domain.errors import PlanLockedError
from cleveragents.domain.events import Event
from cleveragents.domain.ids import PlanId

T = TypeVar("T")
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Killed(BaseException):
    """What a SIGKILL looks like from inside."""


class Faults:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.kill_at: int | None = None
        self.errors: dict[str, list[BaseException | None]] = {}
        self._dead = False

    def reach(self, call: str) -> None:
        if self._dead:
            raise Killed(call)
        self.calls.append(call)
        if len(self.calls) == self.kill_at:
            self._dead = True
            raise Killed(call)
        waiting = self.errors.get(call)
        error = waiting.pop(0) if waiting else None
        if error is not None:
            raise error

    def fail(self, call: str, *errors: BaseException | None) -> None:
        """The next calls of this name raise these, one after the other; None lets one through."""
        self.errors.setdefault(call, []).extend(errors)

    def revive(self) -> None:
        """A new process: the calls are counted anew, and nothing is wrong any more."""
        self.calls, self.kill_at, self.errors, self._dead = [], None, {}, False


class TickingClock:
    """Each look at it is one second later."""

    def __init__(self) -> None:
        self.moment = datetime(2025, 3, 1, tzinfo=UTC)
        self.pauses: list[float] = []

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


class CountingIds:
    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        self._last += 1
        return "01" + "".join(_ALPHABET[(self._last >> s) & 31] for s in range(115, -1, -5))


class EventLog:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


class MemoryLocks:
    """`taken` has what each lock was for, in the order in which they were taken."""

    def __init__(self) -> None:
        self.holders: dict[PlanId, str] = {}
        self.taken: list[str] = []

    @contextmanager
    def hold(self, plan_id: PlanId, operation: str) -> Generator[None]:
        if plan_id in self.holders:
            raise PlanLockedError(plan_id, self.holders[plan_id])
        self.holders[plan_id] = operation
        self.taken.append(operation)
        try:
            yield
        finally:
            del self.holders[plan_id]

    def stop_owner(self, plan_id: PlanId) -> None:
        """There is no other process."""

    def owner(self, plan_id: PlanId) -> str | None:
        return self.holders.get(plan_id)

    def dead(self) -> Mapping[PlanId, str]:
        """Nobody dies in here without taking the whole world along."""
        return {}

    def known(self) -> Sequence[PlanId]:
        return list(self.holders)

    def forget(self, plan_id: PlanId) -> None:
        """It is gone with whoever held it."""
