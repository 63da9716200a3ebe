"""The thread in which requests to models run, so that whoever waits for one can be stopped."""

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Say = Callable[[str], None]
_LOOK_AGAIN = 0.25


class RequestLoop:
    """One event loop for all requests, as connections that are kept open belong to a loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, name="llm", daemon=True)
        thread.start()
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def wait_for(
        self,
        work: Callable[[Say], Coroutine[Any, Any, T]],
        observe: Say,
        refuse_if_stopped: Callable[[], None],
    ) -> T:
        """The result of the work; what it says meanwhile is heard in the thread that waits."""
        words: SimpleQueue[str | None] = SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(work(words.put), self._loop)
        future.add_done_callback(lambda _: words.put(None))
        try:
            _listen(words, observe, refuse_if_stopped)
        except BaseException:
            _end(future)
            raise
        return future.result()


def _listen(
    words: "SimpleQueue[str | None]", observe: Say, refuse_if_stopped: Callable[[], None]
) -> None:
    while True:
        try:
            word = words.get(timeout=_LOOK_AGAIN)
        except Empty:
            refuse_if_stopped()
            continue
        if word is None:
            return
        observe(word)


def _end(future: "Future[Any]") -> None:
    future.cancel()
