"""What a model remembers: its conversation as a chain of messages, and what it has used.

Each message is stored once, as a row of `database/message_repository.py`, together with the group
of the step that it led to.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import asdict, replace
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from cleveragents.domain.actor_protocol import HEAD, Memory, Message

_HEARD, _CALLS, _DOING, _USAGE = "heard", "calls", "doing", "usage"
_SUMMARY = "summary"


class Usage(Struct, frozen=True, kw_only=True):
    """What a conversation has cost so far; `cost` None means that no price is known."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, answer: ModelResponse) -> "Usage":
        price = _price(answer)
        known = self.cost is not None and price is not None
        return Usage(
            requests=self.requests + 1,
            input_tokens=self.input_tokens + answer.usage.input_tokens,
            output_tokens=self.output_tokens + answer.usage.output_tokens,
            cost=round((self.cost or 0) + (price or 0), 6) if known else None,
        )

    def as_map(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost": self.cost,
        }


class Doing(Struct, frozen=True, kw_only=True):
    """A call that is being carried out."""

    tool_name: str
    call_id: str


class Conversation(Struct, frozen=True, kw_only=True):
    """All of it, and which part is not stored yet.

    `calls` are those of the last answer that are still to be carried out, `doing` is the one that
    is being carried out. `heard` is the latest guidance that is in it. `others` in the state is
    not the model's business.
    """

    messages: tuple[ModelMessage, ...] = ()
    added: tuple[Message, ...] = ()
    head: str | None = None
    heard: int = 0
    calls: tuple[str, ...] = ()
    doing: Doing | None = None
    usage: Usage = Usage()
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, state: Mapping[str, Any], messages: Sequence[ModelMessage]) -> "Conversation":
        own = (HEAD, _HEARD, _CALLS, _DOING, _USAGE, _SUMMARY)
        return cls(
            messages=tuple(messages),
            head=state.get(HEAD),
            heard=state.get(_HEARD, 0),
            calls=tuple(state.get(_CALLS, ())),
            doing=Doing(**state[_DOING]) if state.get(_DOING) else None,
            usage=Usage(**state.get(_USAGE, {})),
            others={key: value for key, value in state.items() if key not in own},
        )

    @property
    def memory(self) -> Memory:
        state: dict[str, Any] = {**self.others, HEAD: self.head, _USAGE: self.usage.as_map()}
        doing = asdict(self.doing) if self.doing else None
        optional = {_HEARD: self.heard, _CALLS: list(self.calls), _DOING: doing}
        state |= {key: value for key, value in optional.items() if value}
        return Memory(state=state, added=self.added)

    def ended(self, summary: str) -> Memory:
        """The model has nothing more to do; any further word takes this back."""
        memory = self.memory
        return replace(memory, state={**memory.state, _SUMMARY: summary})

    def saying(self, *parts: ModelRequestPart) -> "Conversation":
        """To the model."""
        return self._with(ModelRequest(parts=list(parts)))

    def told(self, text: str) -> "Conversation":
        return self.saying(UserPromptPart(content=text))

    def answered(self, answer: ModelResponse) -> "Conversation":
        """By the model."""
        said = self._with(told_apart(answer))
        calls = tuple(call.tool_call_id for call in said.last_answer.tool_calls)
        return replace(said, calls=calls, usage=self.usage.plus(answer))

    def without_calls(self, reason: str) -> "Conversation":
        """None of the calls that are left is carried out; the model is told so."""
        found = self
        for call in self.open_calls:
            part = ToolReturnPart(
                tool_name=call.tool_name,
                content=reason,
                tool_call_id=call.tool_call_id,
                outcome="failed",
            )
            found = found.saying(part)
        return replace(found, calls=())

    @property
    def open_calls(self) -> list[ToolCallPart]:
        if not self.calls:
            return []
        asked = [c for c in self.last_answer.tool_calls if c.tool_call_id in self.calls]
        return sorted(asked, key=lambda call: self.calls.index(call.tool_call_id))

    @property
    def last_answer(self) -> ModelResponse:
        return next(m for m in reversed(self.messages) if isinstance(m, ModelResponse))

    def _with(self, said: ModelMessage) -> "Conversation":
        message = sound(said)
        stored = Message.after(self.head, _to_text(message))
        return replace(
            self,
            messages=(*self.messages, message),
            added=(*self.added, stored),
            head=stored.key,
        )


def from_text(body: str) -> ModelMessage:
    return ModelMessagesTypeAdapter.validate_json(body)[0]


def _to_text(message: ModelMessage) -> str:
    return ModelMessagesTypeAdapter.dump_json([message]).decode("utf-8")


def _price(answer: ModelResponse) -> float | None:
    if not answer.usage.has_values():
        return None
    try:
        return float(answer.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None  # nobody knows the price of this model


# --- what a server said, made sound so that it can be stored and sent back ------------------------


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
    return answer if _same(parts, answer.parts) else dataclasses.replace(answer, parts=parts)


def _with_own_id(call: ToolCallPart, taken: set[str]) -> ToolCallPart:
    wanted = found = call.tool_call_id or "call"
    number = 1
    while found in taken:
        number += 1
        found = f"{wanted}_{number}"
    taken.add(found)
    return call if found == call.tool_call_id else dataclasses.replace(call, tool_call_id=found)


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
