"""Whose events are whose: many plans report at once, each under the names that lead to it."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from cleveragents.domain.events import ChildReported, Event, Recovered

if TYPE_CHECKING:
    from cleveragents.application.ports.runtime import EventSink

_CHILD: ContextVar[tuple[str, ...]] = ContextVar("child", default=())


class PlanEvents:
    """An EventSink for all threads: one event at a time, those of children with their names."""

    def __init__(self, sink: "EventSink") -> None:
        self._sink = sink
        self._lock = threading.Lock()

    def emit(self, event: Event) -> None:
        path = _CHILD.get()
        with self._lock:
            self._sink.emit(ChildReported(child=path, event=event) if path else event)

    @contextmanager
    def of_child(self, name: str) -> Generator[None]:
        """What this thread reports in here is about the child `name` of whom it was about."""
        token = _CHILD.set((*_CHILD.get(), name))
        try:
            yield
        finally:
            _CHILD.reset(token)


class Unheard:
    """An EventSink where nobody listens."""

    def emit(self, event: Event) -> None:
        del event


def tell_recovered(events: "EventSink", *sentences: str) -> None:
    for sentence in sentences:
        events.emit(Recovered(message=sentence))
