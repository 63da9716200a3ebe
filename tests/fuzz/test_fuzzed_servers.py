"""Whatever a model or an MCP server answers: a step, a new question, or an error with what to do;
the plan is left at rest, and can be looked at and gone on with."""

import base64
import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.chat_server import ChatServer, Reply, calls, refuse, say
from tests.support.fuzzing import JUNK, SLOW_FUZZ, as_json, garbled, hardened, spoiled
from tests.support.llm_world import LlmWorld
from tests.support.proper import AT_REST, is_proper
from tests.support.world import PlanHandle, World

MCP_SERVER = str(Path(__file__).parents[1] / "support" / "fuzzed_mcp_server.py")


def is_left_in_order(plan: PlanHandle) -> None:
    """Nothing is in the way of whoever looks at it and goes on."""
    assert plan.status["state"] in AT_REST
    for words in (["tree"], ["errors"], ["artifacts"], ["diff"], ["resume", "--dry-run"]):
        is_proper(plan(*words))
    is_proper(plan.rollback("start"))
    is_proper(plan("cancel"))


# --- models -------------------------------------------------------------------------------------

CHUNK: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "gpt-5",
    "choices": [
        {
            "index": 0,
            "delta": {
                "role": "assistant",
                "content": "I write",
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "call_1",
                        "type": "function",
                        "function": {
                            "name": "file_write",
                            "arguments": '{"path": "m", "content": "1"}',
                        },
                    }
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
ARGUMENTS = {"path": "m", "content": "1", "resource": "code"}
TOOLS = ["file_write", "file_read", "shell", "file_search", "sql_query", "no_such_tool", "", "a; b"]
STREAMED = (garbled(spoiled(CHUNK).map(as_json)) | hardened(CHUNK)).map(
    lambda chunk: Reply(raw=b"data: " + chunk + b"\n\ndata: [DONE]\n\n")
)
CALLED = st.builds(
    lambda tool, arguments: calls((tool, arguments.decode("utf-8", "replace"))),
    st.sampled_from(TOOLS),
    garbled(spoiled(ARGUMENTS).map(as_json)) | hardened(ARGUMENTS),
)
REFUSED = st.builds(
    lambda status, body: Reply(status=status, body={"error": body}),
    st.sampled_from([400, 401, 404, 409, 413, 422, 429, 500, 503, 529]),
    JUNK,
)
ANSWERS = st.one_of(
    STREAMED,
    CALLED,
    REFUSED,
    st.builds(say, st.text(max_size=30)),
    st.builds(
        Reply,
        deltas=st.lists(spoiled(CHUNK["choices"][0]["delta"]), max_size=3).map(tuple),
        finish=st.sampled_from(["stop", "length", "content_filter", None, "x"]),
        cut=st.booleans(),
        done=st.booleans(),
        until_closed=st.booleans(),
    ),
    st.builds(Reply, raw=st.binary(max_size=50), status=st.sampled_from([200, 204, 302, 500])),
)
HURRY = {"CLEVERAGENTS_ACTOR_LLM_MAX_RETRIES": "0", "CLEVERAGENTS_ACTOR_LLM_TIMEOUT": "10"}


@pytest.fixture(scope="module")
def llm(world: World) -> Generator[LlmWorld]:
    with ChatServer() as server:
        server.script(say("done"))
        made = LlmWorld(world, server)
        made.agents = made.agents.having(**HURRY, CLEVERAGENTS_TOOL_TIMEOUT="5")
        yield made


@SLOW_FUZZ
@given(answers=st.lists(ANSWERS, min_size=1, max_size=3))
def test_whatever_a_model_answers_the_plan_goes_on_or_stops_in_order(
    llm: LlmWorld, answers: list[Reply]
) -> None:
    plan = llm.use(actor={"max_steps": 5})
    llm.server.will(*answers, refuse(400, "enough", "enough"))
    is_proper(plan.execute())
    llm.server.will()
    is_left_in_order(plan)


# --- MCP servers --------------------------------------------------------------------------------


def _result(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "ID", "result": result}


SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
GOOD = {
    "initialize": _result(
        protocolVersion="2025-06-18", capabilities={}, serverInfo={"name": "x", "version": "1"}
    ),
    "tools/list": _result(tools=[{"name": "note", "description": "writes", "inputSchema": SCHEMA}]),
    "tools/call": _result(
        content=[{"type": "text", "text": "noted"}], structuredContent={"a": 1}, isError=False
    ),
}
PLAIN = {method: as_json(answer) for method, answer in GOOD.items()}


@SLOW_FUZZ
@given(
    method=st.sampled_from(list(GOOD)).flatmap(
        lambda method: st.tuples(
            st.just(method), garbled(spoiled(GOOD[method]).map(as_json)) | hardened(GOOD[method])
        )
    )
)
def test_whatever_an_mcp_server_answers_the_step_is_done_or_fails_in_order(
    world: World, method: tuple[str, bytes]
) -> None:
    told = world.beside / "answers.json"
    answers = {**PLAIN, method[0]: method[1]}
    encoded = {name: base64.b64encode(data).decode() for name, data in answers.items()}
    told.write_text(json.dumps(encoded))
    plan = world.use(
        {"name": "one", "tool": "note", "with": {"text": "x"}},
        mcp_servers={"notes": {"command": [sys.executable, MCP_SERVER, str(told)]}},
        tools={"note": {"server": "notes", "tool": "note", "timeout": 3}},
    )
    is_proper(plan.execute())
    is_left_in_order(plan)
