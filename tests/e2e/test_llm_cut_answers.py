"""An answer that ends before it is complete is none: it is asked for again, never carried out."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.chat_server import ChatServer, Reply, calls, say
from tests.support.llm_world import PATIENT, SCRIPT, LlmWorld, types

# As a proxy ends them whose server fell over: all is in order but for what is missing.
SILENT: dict[str, Any] = {"until_closed": True, "finish": None, "done": False, "usage": None}
TROUBLES = {
    "in a text": Reply(deltas=({"content": "I was about"},), **SILENT),
    "in a call": Reply(deltas=calls(("shell", {"command": "echo b"})).deltas[:1], **SILENT),
    "after a call": Reply(deltas=calls(("shell", {"command": "echo no"})).deltas, **SILENT),
    "between chunks": Reply(
        deltas=({"content": "I was"},), finish=None, done=False, usage=None
    ),
    "in a text about ends": Reply(deltas=({"content": "data: [DONE]"},), **SILENT),
}  # fmt: skip


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES.keys())
def test_it_is_asked_for_again_and_nothing_of_it_is_left(
    llm: LlmWorld, server: ChatServer, trouble: Reply
) -> None:
    server.will(SCRIPT[0], trouble)

    plan = llm.run()

    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    assert types(plan) == ["tool_invocation"] * 2
    assert server.heard(1) == server.heard(2)
    assert plan.status["usage"]["requests"] == 3


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES.keys())
def test_one_that_always_breaks_off_is_no_end_of_the_work(
    llm: LlmWorld, server: ChatServer, trouble: Reply
) -> None:
    server.will(*[trouble] * 3)
    plan = llm.use()

    refused = llm.agents.having(**PATIENT)("plan", "execute", plan.id)

    assert (refused.code, refused.error["code"]) == (1, "model-unreachable")
    assert "broke off" in refused.error["message"]
    assert f"agents plan resume {plan.id}" in refused.error["hint"]
    status = plan.status
    assert (status["state"], status["execution"]["tool_calls"]) == ("errored", 0)
    assert types(plan) == []
    server.will()
    plan("resume").ok()
    assert (plan.sandbox / "b.txt").read_text() == "b\n"


@pytest.mark.parametrize(
    "ending",
    [{"done": False}, {"finish": None}, {"finish": None, "until_closed": True}],
    ids=["no [DONE]", "no finish_reason", "neither chunks nor finish_reason"],
)
def test_one_sign_that_an_answer_is_complete_is_enough(
    llm: LlmWorld, server: ChatServer, ending: dict[str, Any]
) -> None:
    server.script(*(replace(reply, **ending) for reply in SCRIPT))

    plan = llm.run()

    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    assert plan.status["usage"]["requests"] == 3


@pytest.mark.parametrize("reply", [say("I will not", finish="content_filter"), SCRIPT[1]])
def test_one_that_was_withheld_is_neither_done_nor_carried_out(
    llm: LlmWorld, server: ChatServer, reply: Reply
) -> None:
    withheld = replace(reply, finish="content_filter")
    server.will(SCRIPT[0], withheld, *SCRIPT[1:])

    plan = llm.run()

    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    told = [text for _, text in server.heard(2)]
    assert any("withheld" in text for text in told)


def test_one_that_is_always_withheld_fails_the_plan(llm: LlmWorld, server: ChatServer) -> None:
    server.script(say("I will not", finish="content_filter"))
    plan = llm.use()

    refused = plan.execute()

    assert refused.error["code"] == "model-answer"
    assert "withheld" in refused.error["message"]
    assert plan.status["state"] == "errored"
