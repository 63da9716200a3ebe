"""Each provider says in its own way that an answer is complete; without that it broke off."""

import json
from collections.abc import Generator
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart
from tests.support.chat_server import ChatServer, Reply

from cleveragents.domain.errors import ModelUnreachableError
from cleveragents.infrastructure.actors.llm.client import ModelClient, Patience, Question
from cleveragents.infrastructure.actors.llm.factory import ModelAddress
from cleveragents.infrastructure.actors.llm.models import make_model
from cleveragents.infrastructure.clock import SystemClock


def events(*values: dict[str, Any]) -> bytes:
    lines: list[str] = []
    for value in values:
        if "type" in value:
            lines.append(f"event: {value['type']}")
        lines.append(f"data: {json.dumps(value)}\n")
    return ("\n".join(lines) + "\n").encode()


def openai(*, complete: bool) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    said = {"index": 0, "delta": {"role": "assistant", "content": "all is"}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    choices = [said, end] if complete else [said]
    return events(*({**chunk, "choices": [choice]} for choice in choices))


def anthropic(*, complete: bool) -> bytes:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "c"}
    begun = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "all is"},
        },
    ]
    end = [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    return events(*begun, *(end if complete else ()))


def google(*, complete: bool) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": "all is"}]}}
    if complete:
        candidate["finishReason"] = "STOP"
    return events({"candidates": [candidate], "modelVersion": "gemini-test"})


SPOKEN = {
    "openai": ("gpt-4o", openai),
    "anthropic": ("claude-test", anthropic),
    "google": ("gemini-test", google),
}


class Silent:
    def emit(self, event: object) -> None:
        """Nobody watches."""


@pytest.fixture
def server() -> Generator[ChatServer]:
    with ChatServer() as running:
        yield running


def answer(server: ChatServer, provider: str, body: bytes) -> str | None:
    server.will(Reply(raw=body))
    top = server.url if provider == "openai" else server.url.removesuffix("/v1")
    model = SPOKEN[provider][0]
    address = ModelAddress(provider=provider, model=model, base_url=top, api_key="k")
    client = ModelClient(
        make_model(address), Patience(timeout=10, retries=0), SystemClock(), Silent()
    )
    question = Question(
        plan_id="p",
        messages=[ModelRequest(parts=[UserPromptPart(content="task")])],
        tools=[],
        observe=lambda _: None,
        refuse_if_stopped=lambda: None,
    )
    return client.ask(question).text


@pytest.mark.parametrize("provider", SPOKEN)
def test_an_answer_that_says_why_it_ends_is_complete(server: ChatServer, provider: str) -> None:
    assert answer(server, provider, SPOKEN[provider][1](complete=True)) == "all is"


@pytest.mark.parametrize("provider", SPOKEN)
def test_one_that_does_not_say_so_broke_off(server: ChatServer, provider: str) -> None:
    with pytest.raises(ModelUnreachableError, match="broke off"):
        answer(server, provider, SPOKEN[provider][1](complete=False))


def test_where_an_openai_server_says_done_that_is_enough(server: ChatServer) -> None:
    body = openai(complete=False) + b"data: [DONE]\n\n"
    assert answer(server, "openai", body) == "all is"
