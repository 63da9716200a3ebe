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
_LEAVE_TO_CLOSE_SECONDS = 1.0


class RequestLoop:
    """One event loop for all requests, as connections that are kept open belong to a loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_serve, args=(self._loop,), name="llm", daemon=True)
        thread.start()
        weakref.finalize(self, _stop, self._loop, thread)

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


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Until it is stopped. A request that was given up, and the stream of an answer that broke off,
    may be open still: as garbage of a loop that is no more, asyncio would complain about them."""
    try:
        loop.run_forever()
        loop.run_until_complete(_close(asyncio.all_tasks(loop)))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _close(requests: set["asyncio.Task[Any]"]) -> None:
    for request in requests:
        request.cancel()
    await asyncio.gather(*requests, return_exceptions=True)


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    if threading.current_thread() is not thread:
        # The process may end right after this, and the thread with it.
        thread.join(_LEAVE_TO_CLOSE_SECONDS)


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
