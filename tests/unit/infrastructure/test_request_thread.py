"""The thread of the requests: what a broken answer has left open is closed when it ends."""

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, Callable

import pytest

from cleveragents.infrastructure.actors.llm.request_thread import RequestLoop


def ignore(_: object = None) -> None: ...


class Answer:
    """A stream that is read once, and kept by somebody."""

    def __init__(self) -> None:
        self.closed = False
        self.stream = self._pieces()

    async def _pieces(self) -> AsyncGenerator[str]:
        try:
            yield "I was about"
            yield "to say"
        finally:
            await asyncio.sleep(0)
            self.closed = True

    async def begin(self, say: Callable[[str], None]) -> str:
        return await anext(self.stream)


def llm_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "llm"}


@pytest.mark.filterwarnings("error")
def test_a_stream_that_was_left_open_is_closed_with_the_thread(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = llm_threads()
    answer = Answer()
    requests = RequestLoop()
    assert requests.wait_for(answer.begin, ignore, ignore) == "I was about"

    del requests

    assert answer.closed
    assert llm_threads() <= before
    del answer
    gc.collect()
    assert caplog.text == ""


def test_whoever_waits_no_more_ends_the_request(caplog: pytest.LogCaptureFixture) -> None:
    requests, ended = RequestLoop(), threading.Event()

    async def hang(say: Callable[[str], None]) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        requests.wait_for(hang, ignore, stop)
    del requests

    assert ended.is_set()
    gc.collect()
    assert caplog.text == ""


def test_what_a_request_says_is_heard_by_whoever_waits() -> None:
    requests, heard = RequestLoop(), list[tuple[str, threading.Thread]]()

    async def speak(say: Callable[[str], None]) -> int:
        say("one")
        say("two")
        return 3

    def note(word: str) -> None:
        heard.append((word, threading.current_thread()))

    assert requests.wait_for(speak, note, ignore) == 3
    here = threading.current_thread()
    assert heard == [("one", here), ("two", here)]
