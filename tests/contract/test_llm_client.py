"""The same conversation as each provider's protocol has it, and what they refuse in our words."""

from collections.abc import Generator
from typing import Any

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition
from tests.support.chat_server import ChatServer, refuse

from cleveragents.domain.errors import ModelRefusedError
from cleveragents.infrastructure.actors.llm.client import ModelClient, Patience, Question
from cleveragents.infrastructure.actors.llm.factory import ModelAddress
from cleveragents.infrastructure.actors.llm.models import make_model
from cleveragents.infrastructure.clock import SystemClock

MODELS = {"openai": "gpt-4o", "anthropic": "claude-test", "google": "gemini-test"}
TALK: list[ModelMessage] = [
    ModelRequest(parts=[SystemPromptPart(content="rules"), UserPromptPart(content="task")]),
    ModelResponse(
        parts=[
            TextPart(content="both"),
            ToolCallPart(tool_name="shell", args='{"command": "x"}', tool_call_id="c1"),
            ToolCallPart(tool_name="shell", args='{"command": "y"}', tool_call_id="c2"),
        ]
    ),
    ModelRequest(parts=[ToolReturnPart(tool_name="shell", content="ok", tool_call_id="c1")]),
    ModelRequest(parts=[ToolReturnPart(tool_name="shell", content="no", tool_call_id="c2")]),
    ModelRequest(parts=[UserPromptPart(content="guidance")]),
]


class Silent:
    def emit(self, event: object) -> None:
        """Nobody watches."""


@pytest.fixture
def server() -> Generator[ChatServer]:
    with ChatServer() as running:
        yield running


def asked(server: ChatServer, provider: str) -> dict[str, Any]:
    server.will(refuse(401, "invalid_api_key", "no such key"))
    top = server.url if provider == "openai" else server.url.removesuffix("/v1")
    address = ModelAddress(provider=provider, model=MODELS[provider], base_url=top, api_key="k")
    patience = Patience(timeout=10, retries=0, temperature=0.5)
    client = ModelClient(make_model(address), patience, SystemClock(), Silent())
    question = Question(
        plan_id="p",
        messages=TALK,
        tools=[ToolDefinition(name="shell", description="Run it")],
        observe=lambda _: None,
        refuse_if_stopped=lambda: None,
    )
    with pytest.raises(ModelRefusedError) as refused:
        client.ask(question)
    assert f"the key for {MODELS[provider]} is not accepted" in refused.value.message
    return server.asked[-1]


def test_openai_gets_a_message_for_each_result(server: ChatServer) -> None:
    request = asked(server, "openai")

    roles = [message["role"] for message in request["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert request["tools"][0]["function"]["name"] == "shell"


def test_anthropic_gets_all_results_of_one_answer_in_one_message(server: ChatServer) -> None:
    request = asked(server, "anthropic")

    assert request["system"] == "rules"
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "user"]
    kinds = [part["type"] for part in request["messages"][-1]["content"]]
    assert kinds == ["tool_result", "tool_result", "text"]


def test_google_gets_all_results_of_one_answer_in_one_message(server: ChatServer) -> None:
    request = asked(server, "google")

    assert [message["role"] for message in request["contents"]][:3] == ["user", "model", "user"]
    parts = request["contents"][2]["parts"]
    assert ["functionResponse" in part for part in parts] == [True, True]
