"""What can go wrong with a model: each is waited for, answered, or told with what to do about it;
no step is lost, and nothing crashes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.chat_server import ChatServer, Reply, call, calls, refuse, say
from tests.support.kill_points import kill_points, killed
from tests.support.llm_world import PATIENT, SCRIPT, LlmWorld, names, types
from tests.support.world import World, wait_for

# --- what passes --------------------------------------------------------------------------------

LIMITED = refuse(429, "rate_limit_exceeded", "slow down", Retry_After="0")
CUT = Reply(deltas=({"content": "I was about"},), cut=True)
CUT_IN_A_CALL = Reply(deltas=calls(("shell", {"command": "echo b"})).deltas[:1], cut=True)


@pytest.mark.parametrize(
    "trouble",
    [
        LIMITED,
        refuse(500, "server_error", "oh no", retry_after_ms="10"),
        refuse(503, "overloaded", "come back", Retry_After="0"),
        CUT,
        CUT_IN_A_CALL,
        Reply(raw=b"<html>a proxy's page</html>"),
        Reply(raw=b'data: {"choices": 7}\n\n'),
        Reply(raw=b"data: {not json\n\n"),
        Reply(raw=b""),
    ],
    ids=["429", "500", "503", "cut", "cut-in-a-call", "html", "shape", "no-json", "empty-body"],
)
def test_a_passing_trouble_is_waited_for(llm: LlmWorld, server: ChatServer, trouble: Reply) -> None:
    server.will(SCRIPT[0], trouble)

    plan = llm.run()

    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    assert types(plan) == ["tool_invocation"] * 2
    # The same was asked again, and nothing of the broken answer is left.
    assert server.heard(1) == server.heard(2)
    assert plan.status["usage"]["requests"] == 3


def test_each_pause_is_shown(llm: LlmWorld, server: ChatServer) -> None:
    server.will(LIMITED)
    plan = llm.use()

    shown = llm.agents.inside("-v", "plan", "execute", plan.id)

    assert "asking again in 0 s" in shown.err
    assert "step 1: thinking" in shown.err


@pytest.mark.parametrize(
    "trouble",
    [LIMITED, refuse(429, "rate_limit_exceeded", "tomorrow", Retry_After="86400")],
    ids=["again and again", "too long"],
)
def test_a_trouble_that_does_not_pass_ends_the_run_which_can_be_resumed(
    llm: LlmWorld, server: ChatServer, trouble: Reply
) -> None:
    server.will(SCRIPT[0], *[trouble] * 5)
    plan = llm.use()

    refused = llm.agents.having(**PATIENT)("plan", "execute", plan.id)

    assert refused.error["code"] == "model-unreachable"
    assert f"agents plan resume {plan.id}" in refused.error["hint"]
    assert plan.status["state"] == "errored"
    assert plan.status["last_completed_step"] == 0
    server.will()
    plan("resume").ok()
    assert (plan.sandbox / "b.txt").read_text() == "b\n"


# --- what does not ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "code", "word"),
    [
        (refuse(401, "invalid_api_key", "Incorrect API key"), "model-refused", "key"),
        (refuse(404, "model_not_found", "The model does not exist"), "model-refused", "no model"),
        (refuse(429, "insufficient_quota", "You exceeded your quota"), "model-refused", "used up"),
        (refuse(400, "bad_request", "what is this"), "model-refused", "refused"),
        (
            refuse(400, "context_length_exceeded", "maximum context length is 8192 tokens"),
            "context-overflow",
            "too long",
        ),
    ],
    ids=["key", "model", "quota", "request", "context"],
)
def test_what_the_provider_refuses_is_told_at_once_and_no_step_is_lost(
    llm: LlmWorld, server: ChatServer, reply: Reply, code: str, word: str
) -> None:
    server.will(SCRIPT[0], reply)
    plan = llm.use()

    refused = plan.execute()

    assert refused.error["code"] == code
    assert word in refused.error["message"]
    assert len(server.asked) == 2
    assert plan.status["state"] == "errored"
    assert (plan.sandbox / "a.txt").exists()
    plan("resume").ok()
    assert plan.status["state"] == "complete"
    assert types(plan) == ["tool_invocation"] * 2


def test_a_missing_key_is_told_before_anything_is_asked(llm: LlmWorld, server: ChatServer) -> None:
    plan = llm.use()
    without = llm.world.agents

    refused = without("plan", "execute", plan.id)

    assert refused.error["code"] == "model-key-missing"
    assert "OPENAI_API_KEY" in refused.error["hint"]
    assert server.asked == []
    plan("resume").ok()


def test_a_server_of_ones_own_needs_no_key_and_settings_go_first(
    llm: LlmWorld, server: ChatServer
) -> None:
    plan = llm.use()
    llm.world.agents("config", "set", "actor.llm.base-url", server.url).ok()
    llm.world.agents("plan", "execute", plan.id).ok()
    assert set(server.keys) == {"none"}

    llm.world.agents("config", "set", "actor.llm.api-key", "sk-mine").ok()
    plan = llm.run()

    assert server.keys[-1] == "sk-mine"
    shown = llm.agents("config", "get", "actor.llm.api-key").ok().data["value"]
    assert shown == "(set, not shown)"


@pytest.mark.parametrize("model", ["gpt-5", "nobody:gpt-5", "openai:"])
def test_a_model_of_nobody_is_refused_before_a_plan_is_made(llm: LlmWorld, model: str) -> None:
    path = llm.world.write_action(
        {
            "name": "demo",
            "description": "x",
            "resources": {"code": {"type": "git-checkout", "path": "."}},
            "actor": {"type": "llm", "model": model},
        }
    )

    refused = llm.agents("plan", "use", path)

    assert refused.error["code"] == "actor-unavailable"
    assert "openai, anthropic, google" in refused.error["hint"]
    assert llm.world.plan_count() == 0


def test_without_the_extra_a_plan_is_refused_with_what_to_type(llm: LlmWorld) -> None:
    action = llm.world.write_action(
        {
            "name": "demo",
            "description": "x",
            "resources": {"code": {"type": "git-checkout", "path": "."}},
            "actor": {"type": "llm", "model": "openai:gpt-5"},
        }
    )
    hidden = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from cleveragents.cli.main import run; sys.exit(run(sys.argv[1:]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", hidden, "plan", "use", action],
        cwd=llm.world.project.path,
        env=llm.agents.environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "pip install 'cleveragents[llm]'" in done.stderr + done.stdout


# --- answers that make no sense -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (call("launch_rocket", target="moon"), "unknown tool `launch_rocket`"),
        (call("file_write", path="x"), "content"),
        (call("file_write", path=["x"], content=7), "file.write"),
        (call("file_write", path="../../x", content="out"), "outside the sandbox"),
        (call("file_read", path="not-there"), "not-there"),
        (call("shell", command="echo x > half; exit 3"), "3"),
        (call("sql_query", sql="select 1"), "sql.query (not offered)"),
    ],
    ids=["unknown", "missing", "wrong", "outside", "no-file", "exit-3", "not-offered"],
)
def test_a_call_that_fails_is_a_step_and_is_answered(
    llm: LlmWorld, server: ChatServer, reply: Reply, failure: str
) -> None:
    server.script(reply, SCRIPT[0], say("done"))
    plan = llm.run(actor={"tools": ["file.*", "shell"]})

    assert types(plan) == ["tool_invocation", "error_recovery"]
    told = [text for role, text in server.heard(1) if role == "tool"][-1]
    assert "failed: " in told
    assert failure in told
    assert "What it had changed was undone." in told
    assert not (plan.sandbox / "half").exists()
    assert (plan.sandbox / "a.txt").exists()
    failed = plan("errors").ok().data
    assert failure in str(failed)


@pytest.mark.parametrize(
    ("reply", "sent_back"),
    [
        (calls(("file_write", "{not json")), "not a JSON object"),
        (calls(("file_write", "[1, 2]")), "not a JSON object"),
        (say(""), "Your answer was empty"),
        (say("and so on and so", finish="length"), "cut off"),
        (calls(("spawn_subplans", {"plans": []})), "at least one child plan"),
        (calls(("spawn_subplans", {"plans": [{"name": "1"}]})), "a child's name"),
        (calls(("spawn_subplans", {"plans": [{"name": "a"}]})), "description"),
    ],
    ids=["no-json", "list", "empty", "length", "no-child", "child-name", "child-task"],
)
def test_an_answer_that_cannot_be_read_is_sent_back(
    llm: LlmWorld, server: ChatServer, reply: Reply, sent_back: str
) -> None:
    server.will(reply, SCRIPT[0], say("done"))
    plan = llm.run()

    assert sent_back in server.heard(1)[-1][1]
    assert types(plan) == ["tool_invocation"]
    assert plan.status["usage"]["requests"] == 3


def test_a_model_that_talks_nothing_but_nonsense_ends_the_run(
    llm: LlmWorld, server: ChatServer
) -> None:
    server.will(SCRIPT[0], *[calls(("file_write", "{not json"))] * 3)
    plan = llm.use()

    refused = plan.execute()

    assert refused.error["code"] == "model-answer"
    assert plan.status["last_completed_step"] == 0
    plan("resume").ok()
    assert names(plan) == ["file.write a.txt", "shell echo b >> b.txt"]
    # What it had talked before is not part of the plan.
    assert len(server.heard()) == 6


def test_too_many_failures_in_a_row_end_the_run_and_a_person_can_help(
    llm: LlmWorld, server: ChatServer
) -> None:
    bad = call("shell", command="exit 7")
    server.script(*[bad] * 5)
    plan = llm.use()

    refused = plan.execute()

    assert refused.code == 1
    assert plan.status["state"] == "errored"
    assert types(plan) == ["tool_invocation", *["error_recovery"] * 3]
    server.script(*[bad] * 4, SCRIPT[0], say("done"))
    llm.agents("plan", "prompt", plan.id, "just write a.txt").ok()
    assert server.heard(4)[-1] == ("user", "just write a.txt")
    assert (plan.sandbox / "a.txt").exists()


def test_a_price_that_nobody_knows_cannot_be_limited(llm: LlmWorld) -> None:
    plan = llm.use(actor={"model": "openai:my-own", "max_cost": 1.0})

    refused = plan.execute()

    assert refused.error["code"] == "actor-failed"
    assert "max_tokens" in refused.error["hint"]


# --- dying --------------------------------------------------------------------------------------


def test_killed_at_any_moment_the_model_is_not_asked_again_for_what_it_decided(
    tmp_path: Path, template: World, server: ChatServer, unmeasured: None
) -> None:
    """Every so manieth moment, so that the model's answer, the record and the tool lie between."""

    def fresh(name: str) -> LlmWorld:
        return LlmWorld(World(tmp_path / name, template), server)

    first = fresh("count")
    plan = first.use()
    data = first.agents.data_dir
    watched = [data / "cleveragents.db", data / "cleveragents.db-wal", data / "sandboxes"]
    points = kill_points(lambda: plan.execute(), watched)
    chosen = points[:: max(1, len(points) // 9)]
    assert len(chosen) >= 8
    for number, point in enumerate(chosen):
        llm = fresh(f"w{number}")
        plan = llm.use()
        killed(lambda plan=plan: plan.execute(), point)
        # Its last word is no decision, but it is not asked for that again either.
        decided = 3 if plan.status["state"] == "complete" else len(types(plan))
        server.asked.clear()
        plan("resume").ok()

        said = [sum(r == "assistant" for r, _ in server.heard(i)) for i in range(len(server.asked))]
        assert said == list(range(decided, 3)), point
        assert (plan.sandbox / "b.txt").read_text() == "b\n", point
        assert plan.status["usage"]["requests"] == 3


def test_kill_nine_during_the_tool_repeats_the_tool_and_not_the_question(
    llm: LlmWorld, server: ChatServer
) -> None:
    mark = llm.world.beside / "seen"
    waiting = f"echo x >> b.txt; test -e {mark} || {{ touch {mark}; sleep 60; }}"
    server.script(call("shell", command=waiting), say("done"))
    plan = llm.use()
    process = llm.agents.start("plan", "execute", plan.id)
    wait_for(mark.exists, 60)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    asked = len(server.asked)

    plan("resume").ok()

    assert asked == 1
    assert len(server.asked) == 2
    assert (plan.sandbox / "b.txt").read_text() == "x\n"


def test_ctrl_c_while_the_model_thinks_leaves_a_plan_that_goes_on(
    llm: LlmWorld, server: ChatServer
) -> None:
    started = llm.world.top / "started"

    def think() -> None:
        started.touch()
        wait_for(lambda: process.poll() is not None, 30)

    server.will(SCRIPT[0], say("too late", before=think))
    plan = llm.use()
    process = llm.agents.start("plan", "execute", plan.id)
    wait_for(started.exists, 60)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=30)

    assert process.returncode == 130
    assert plan.status["state"] == "queued"
    assert plan.status["last_completed_step"] == 0
    plan("resume").ok()
    assert (plan.sandbox / "b.txt").read_text() == "b\n"


def test_a_later_call_of_one_answer_that_cannot_be_read_is_told_to_the_model(
    llm: LlmWorld, server: ChatServer
) -> None:
    good = {"path": "a.txt", "content": "A\n"}
    server.will(calls(("file_write", good), ("file_write", "{not json")), say("done"))
    plan = llm.run()
    assert names(plan) == ["file.write a.txt"]
    assert any("not a JSON object" in text for _, text in server.heard())
