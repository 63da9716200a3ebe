"""Telling a streamed answer that is complete from one that broke off.

A connection that is closed looks the same in both cases. So an answer counts only with a sign of
its own that it is complete: the reason why it ends, which every protocol has, or the `[DONE]` that
OpenAI's ends with, for servers that leave the reason out.
"""

from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

from pydantic_ai.messages import ModelResponse

from cleveragents.infrastructure.actors.llm.whole_answers import as_stream, is_whole

_DONE = (b"data: [DONE]", b"data:[DONE]")
_REASON = "finish_reason"
# Of a stream, what may still belong to its last line.
_TAIL = 64

Bytes = Callable[..., AsyncIterator[bytes]]


class Ending:
    """Listens to the stream of one request for `[DONE]`."""

    def __init__(self) -> None:
        self.said = False
        _LISTENING.set(self)

    def is_complete(self, answer: ModelResponse) -> bool:
        """The library fills in `stop` where an OpenAI server gave no reason; its own is in the
        details. Of what was withheld there may be no reason but this one."""
        told = (answer.provider_details or {}).get(_REASON)
        return bool(told) or self.said or answer.finish_reason not in (None, "stop")

    def listening(self, stream: Bytes) -> Bytes:
        async def passed_on(*args: Any, **kwargs: Any) -> AsyncIterator[bytes]:
            tail = b""
            async for chunk in _events(stream(*args, **kwargs)):
                # A line of its own: what a model says is in quotes there, and never is.
                lines = (tail + chunk).splitlines()
                self.said = self.said or any(line in _DONE for line in lines)
                tail = (tail + chunk)[-_TAIL:]
                yield chunk

        return passed_on


async def _events(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The stream as it is; one object in its place as a stream of it."""
    whole: list[bytes] = []
    is_first = True
    async for chunk in stream:
        if whole or (is_first and is_whole(chunk)):
            whole.append(chunk)
        else:
            yield chunk
        is_first = is_first and not chunk.strip()
    if whole:
        yield as_stream(b"".join(whole))


_LISTENING: ContextVar[Ending] = ContextVar("the stream that is listened to")


async def listen(response: Any) -> None:
    """For the HTTP client, at the beginning of each response."""
    ending = _LISTENING.get(None)
    # What says that the request failed is one object by right.
    if ending is not None and response.is_success:
        response.aiter_bytes = ending.listening(response.aiter_bytes)
