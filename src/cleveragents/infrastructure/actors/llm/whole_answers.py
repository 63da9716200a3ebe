"""Answers that came whole where a stream was asked for: each is read as a stream of one piece.

Many servers that speak OpenAI's protocol do not stream, and say so by not doing it. Their answer is
complete, and paid for.
"""

import json
from typing import Any, cast

from cleveragents.domain.foreign_json import NotJsonError, read_json


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
