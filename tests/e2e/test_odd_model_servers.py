"""Model servers that do things differently: what they say is used, or told as what it is."""

from dataclasses import replace

import pytest
from tests.support.chat_server import ChatServer, Reply, call, calls, refuse, say
from tests.support.llm_world import LlmWorld, decisions, names, types

SCRIPT = (
    call("file_write", "First the file.", path="a.txt", content="A\n"),
    calls(("shell", {"command": "echo b >> b.txt"}), ("shell", {"command": "echo c >> c.txt"})),
    say("done"),
)
WHOLE = tuple(replace(reply, whole=True) for reply in SCRIPT)
DECLINED = Reply(deltas=({"refusal": "I cannot help "}, {"refusal": "with that."}))
HALF = "\ud83d"
OTHER_HALF = "\ude00"


def rationale(llm: LlmWorld, decision: str) -> str:
    return llm.agents("plan", "explain", decision).ok().data["rationale"]


# --- servers that do not stream -----------------------------------------------------------------


def test_an_answer_that_comes_whole_is_as_good_as_one_that_is_streamed(
    llm: LlmWorld, server: ChatServer
) -> None:
    server.script(*WHOLE)

    plan = llm.run()

    assert (plan.sandbox / "a.txt").read_text() == "A\n"
    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    assert (plan.sandbox / "c.txt").read_text() == "c\n"
    assert rationale(llm, decisions(plan)[0]) == "First the file."
    assert plan.status["result"] == "done"
    # No answer was paid for twice.
    assert len(server.asked) == 3
    usage = plan.status["usage"]
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"]) == (3, 300, 30)


def test_a_server_that_refuses_to_stream_is_asked_without(
    llm: LlmWorld, server: ChatServer
) -> None:
    unverified = refuse(400, "unsupported_value", "Your organization must be verified to stream")
    assert unverified.body is not None
    error = {**unverified.body["error"], "param": "stream"}
    server.will(replace(unverified, body={"error": error}))

    plan = llm.run()

    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    assert [bool(asked.get("stream")) for asked in server.asked] == [True, False, False, False]
    assert plan.status["usage"]["requests"] == 3


@pytest.mark.parametrize(
    "reply",
    [
        Reply(raw=b'{"choices": [{"message": {"content": "I was'),
        Reply(raw=b'{"choices": 7}'),
        Reply(raw=b'{"choices": [{"message": 7, "finish_reason": "stop"}]}'),
        Reply(raw=b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        Reply(raw=b'{"detail": "come back later"}'),
    ],
    ids=["cut", "no list", "no message", "deep", "something else"],
)
def test_one_object_that_is_no_answer_is_asked_for_again(
    llm: LlmWorld, server: ChatServer, reply: Reply
) -> None:
    server.will(SCRIPT[0], reply)

    plan = llm.run()

    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    assert server.heard(1) == server.heard(2)


# --- a model that declines ----------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
@pytest.mark.parametrize("strategize", [False, True])
def test_a_model_that_declines_is_quoted_and_not_asked_again(
    llm: LlmWorld, server: ChatServer, *, whole: bool, strategize: bool
) -> None:
    server.script(replace(DECLINED, whole=whole))
    plan = llm.use(actor={"strategize": strategize})

    refused = plan.execute()

    assert refused.error["code"] == "model-declined"
    assert "I cannot help with that." in refused.error["message"]
    assert f"agents plan prompt {plan.id}" in refused.error["hint"]
    assert len(server.asked) == 1
    assert plan.status["state"] == "errored"
    server.script(*SCRIPT)
    plan("resume").ok()
    assert (plan.sandbox / "b.txt").read_text() == "b\n"


# --- text that is none --------------------------------------------------------------------------


def test_half_a_character_in_a_text_is_written_as_its_number(
    llm: LlmWorld, server: ChatServer
) -> None:
    reply = call("file_write", f"Half {HALF} of it.", path="a.txt", content="A\n")
    server.will(reply, say(f"end {OTHER_HALF}"))

    plan = llm.run()

    assert plan.status["state"] == "complete"
    assert rationale(llm, decisions(plan)[0]) == "Half \\ud83d of it."
    assert plan.status["result"] == "end \\ude00"


def test_a_character_that_came_in_two_halves_is_one(llm: LlmWorld, server: ChatServer) -> None:
    arguments = f'{{"path": "a.txt", "content": "{HALF}{OTHER_HALF}"}}'
    halves = calls(("file_write", arguments))
    # As a server sends it that cuts its text anywhere: one half at the end of each piece.
    cut = arguments.index(OTHER_HALF)
    first, rest = (dict(delta["tool_calls"][0]) for delta in halves.deltas)
    first["function"] = {"name": "file_write", "arguments": arguments[:cut]}
    rest["function"] = {"arguments": arguments[cut:]}
    deltas = (
        {"content": HALF},
        {"content": OTHER_HALF},
        {"tool_calls": [first]},
        {"tool_calls": [rest]},
    )
    server.will(replace(halves, deltas=deltas), say("done"))

    plan = llm.run()

    assert (plan.sandbox / "a.txt").read_text() == "\N{GRINNING FACE}"
    assert rationale(llm, decisions(plan)[0]) == "\N{GRINNING FACE}"


@pytest.mark.parametrize("half", [HALF, "\\ud83d"], ids=["as it is", "escaped"])
def test_a_call_with_half_a_character_is_sent_back_and_not_carried_out(
    llm: LlmWorld, server: ChatServer, half: str
) -> None:
    arguments = f'{{"path": "a.txt", "content": "{half}"}}'
    server.will(calls(("file_write", arguments)), SCRIPT[0], say("done"))

    plan = llm.run()

    assert types(plan) == ["tool_invocation"]
    assert (plan.sandbox / "a.txt").read_text() == "A\n"
    assert "not a JSON object" in server.heard(1)[-1][1]
    assert "hex escape" in server.heard(1)[-1][1]


def test_a_name_that_is_no_text_can_be_told_to_the_model(llm: LlmWorld, server: ChatServer) -> None:
    made = call("shell", command="printf x > \"$(printf 'odd\\377')\"")
    server.script(made, call("file_list", path="."), say("done"))

    plan = llm.run()

    assert plan.status["state"] == "complete"
    assert "odd\\xff" in server.heard()[-1][1] or "odd\\udcff" in server.heard()[-1][1]


# --- names and ids of calls ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rm; echo x", "a b", "", "functions.shell", "\N{SNOWMAN}"])
def test_each_result_goes_to_the_call_that_it_is_of(
    llm: LlmWorld, server: ChatServer, name: str
) -> None:
    server.will(calls((name, {}), ("shell", {"command": "echo b"})), SCRIPT[0], say("done"))

    plan = llm.run()

    asked = server.asked[1]["messages"]
    made = next(message["tool_calls"] for message in asked if message.get("tool_calls"))
    heard = [message for message in asked if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in heard] == [item["id"] for item in made]
    # A name that no provider takes would have every further request refused.
    assert all(item["function"]["name"].isascii() for item in made)
    assert not any(set("; .") & set(item["function"]["name"]) for item in made)
    assert all(item["function"]["name"] for item in made)
    assert names(plan)[-1] == "file.write a.txt"


def test_calls_with_one_id_are_carried_out_once_each(llm: LlmWorld, server: ChatServer) -> None:
    both = (("shell", {"command": "echo b >> b.txt"}), ("shell", {"command": "echo c >> c.txt"}))
    reply = calls(*both)
    pieces = [dict(delta["tool_calls"][0]) for delta in reply.deltas]
    for piece in pieces:
        if "id" in piece:
            piece["id"] = "same"
    server.will(replace(reply, deltas=tuple({"tool_calls": [p]} for p in pieces)), say("done"))

    plan = llm.run()

    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    assert (plan.sandbox / "c.txt").read_text() == "c\n"
    ids = [message["tool_call_id"] for message in server.asked[1]["messages"][-2:]]
    assert len(set(ids)) == 2
