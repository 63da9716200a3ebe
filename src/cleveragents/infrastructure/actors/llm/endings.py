"""Telling a streamed answer that is complete from one that broke off.

A connection that is closed looks the same in both cases. So an answer counts only with a sign of
its own that it is complete: the reason why it ends, which every protocol has, or the `[DONE]` that
OpenAI's ends with, for servers that leave the reason out.

Many servers that speak that protocol do not stream, and say so by not doing it. Their answer is
complete, and paid for: it is read as a stream of one piece.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any, cast

from pydantic_ai.messages import ModelResponse

from cleveragents.domain.foreign_json import NotJsonError, read_json

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


# --- answers that came whole where a stream was asked for -----------------------------------------


def is_whole(beginning: bytes) -> bool:
    """Whether a body that begins like this is one object; no line of a stream begins so."""
    return beginning.lstrip()[:1] == b"{"


def as_stream(body: bytes) -> bytes:
    """The events that a server would have sent that streams; the body as it is if it is none."""
    try:
        told = read_json(body)
    except NotJsonError:
        return body
    answer = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    if _is_answer(answer):
        answer["choices"] = [_piece(choice) for choice in answer["choices"]]
    elif "error" not in answer:
        return body
    event = json.dumps(answer)
    return f"data: {event}\n\ndata: [DONE]\n\n".encode("ascii")


def _is_answer(told: dict[str, Any]) -> bool:
    choices = told.get("choices")
    if not isinstance(choices, list) or not choices:
        return False
    return all(_has_message(choice) for choice in cast("list[object]", choices))


def _has_message(choice: object) -> bool:
    if not isinstance(choice, dict):
        return False
    return isinstance(cast("dict[str, object]", choice).get("message"), dict)


def _piece(choice: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = choice["message"]
    rest = {key: value for key, value in choice.items() if key != "message"}
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return {**rest, "delta": message}
    numbered = enumerate(cast("list[object]", calls))
    made = [_numbered(index, call) for index, call in numbered]
    return {**rest, "delta": {**message, "tool_calls": made}}


def _numbered(index: int, call: object) -> object:
    """In a stream each piece says which call it is of."""
    return {**cast("dict[str, Any]", call), "index": index} if isinstance(call, dict) else call
