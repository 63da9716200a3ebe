"""Making sound what a server said, so that it can be stored and sent back: text that is text,
and calls that can be told apart."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    ToolCallPart,
)


def sound_text(text: str) -> str:
    """Two halves of a character joined; a half alone is written as its number.

    In the arguments of a call that is how JSON itself writes it, so that they mean the same.
    """
    if text.isascii():
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return joined.encode("utf-8", "backslashreplace").decode("utf-8")


def sound(message: ModelMessage) -> ModelMessage:
    """The message itself, if all its text is text."""
    try:
        ModelMessagesTypeAdapter.dump_json([message])
    except ValueError:
        told = _mended(ModelMessagesTypeAdapter.dump_python([message]))
        return ModelMessagesTypeAdapter.validate_python(told)[0]
    return message


def told_apart(answer: ModelResponse) -> ModelResponse:
    """Each call with an id of its own: some servers give all of them the same, or none."""
    taken: set[str] = set()
    parts: list[ModelResponsePart] = []
    for part in answer.parts:
        own = _with_own_id(part, taken) if isinstance(part, ToolCallPart) else part
        parts.append(own)
    return answer if _same(parts, answer.parts) else replace(answer, parts=parts)


def _with_own_id(call: ToolCallPart, taken: set[str]) -> ToolCallPart:
    wanted = found = call.tool_call_id or "call"
    number = 1
    while found in taken:
        number += 1
        found = f"{wanted}_{number}"
    taken.add(found)
    return call if found == call.tool_call_id else replace(call, tool_call_id=found)


def _same(parts: Sequence[object], others: Sequence[object]) -> bool:
    return all(one is other for one, other in zip(parts, others, strict=True))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return sound_text(value)
    if isinstance(value, dict):
        known = cast("dict[Any, Any]", value)
        return {_mended(key): _mended(item) for key, item in known.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in cast("Sequence[Any]", value)]
    return value
