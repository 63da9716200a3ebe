"""A language model decides the steps: a real HTTP server, the real command, nothing in between."""

from typing import Any

import pytest
from tests.support.chat_server import ChatServer, call, calls, say
from tests.support.llm_world import LlmWorld, decisions, names, types
from tests.support.world import World, write

WRITE = ("file_write", {"path": "a.txt", "content": "A\n"})
SCRIPT = (
    call("file_write", "First the file.", path="a.txt", content="A\n"),
    call("shell", "Then another.", command="echo b > b.txt"),
    call("file_edit", "And a change.", path="a.txt", old="A", new="AA"),
    say("Everything is there."),
)
SAID = ["First the file. -> file_write", "Then another. -> shell", "And a change. -> file_edit"]


def spoken(server: ChatServer, index: int = -1) -> list[str]:
    return [text for role, text in server.heard(index) if role == "assistant"]


def said_by_people(server: ChatServer, index: int = -1) -> list[str]:
    return [text for role, text in server.heard(index) if role == "user"]


# --- the work -----------------------------------------------------------------------------------


def test_each_answer_becomes_a_step_with_its_reason_and_its_checkpoint(llm: LlmWorld) -> None:
    plan = llm.run()

    assert plan.status["state"] == "complete"
    assert (plan.sandbox / "a.txt").read_text() == "AA\n"
    assert (plan.sandbox / "b.txt").read_text() == "b\n"
    assert types(plan) == ["tool_invocation"] * 3
    assert names(plan) == ["file.write a.txt", "shell echo b > b.txt", "file.edit a.txt"]
    told = llm.agents("plan", "explain", decisions(plan)[0]).ok().data
    assert told["rationale"] == "First the file."
    assert plan.status["result"] == "Everything is there."
    plan("apply", "--yes").ok()
    assert (llm.world.project.path / "a.txt").read_text() == "AA\n"


def test_a_scripted_run_of_the_same_task_has_the_same_tree(llm: LlmWorld, world: World) -> None:
    plan = llm.run()
    edit = {"resource": "code", "path": "a.txt", "old": "A", "new": "AA"}
    arguments = {"resource": "code", "command": "echo b > b.txt"}
    scripted = world.run(
        write("a.txt", "A\n"),
        {"tool": "shell", "with": arguments},
        {"tool": "file.edit", "with": edit},
    )

    assert types(plan) == types(scripted)
    # What the model says at the end is part of the plan's last state.
    assert plan.reasons == [*scripted.reasons, "complete"]
    assert plan.tree() == scripted.tree()


def test_the_model_is_told_task_rules_invariants_and_tools(
    llm: LlmWorld, server: ChatServer
) -> None:
    tools = {
        "build": {"command": ["make", "{target}"], "description": "Build it"},
        "tests": {"command": ["true"], "validation": "required"},
    }
    llm.run(
        invariants=["the tests stay as they are"],
        tools=tools,
        actor={"tools": ["file.*", "shell", "build"], "instructions": "Be brief."},
    )

    rules, task = server.heard(0)
    assert "Whatever you do, this must stay true:\n- the tests stay as they are" in rules[1]
    assert "Be brief." in rules[1]
    assert task == ("user", "Change the project")
    offered = {tool["function"]["name"]: tool["function"] for tool in server.asked[0]["tools"]}
    assert {"file_write", "file_read", "shell", "build"} <= set(offered)
    assert not {"tests", "sql_query", "spawn_subplans"} & set(offered)
    assert offered["build"]["parameters"]["required"] == ["target"]
    assert offered["file_write"]["parameters"]["properties"]["resource"]["enum"] == ["code"]
    assert server.asked[0]["stream"] is True


def test_it_hears_what_came_of_each_step(llm: LlmWorld, server: ChatServer) -> None:
    server.script(call("shell", command="echo hello"), call("file_read", path="a"), say("ok"))
    (llm.world.project.path / "a").write_text("x" * 40_000)
    llm.world.project.git("add", "a")
    llm.world.project.git("commit", "-qm", "a")
    llm.run()

    heard = [text for role, text in server.heard() if role == "tool"]
    assert heard[0].startswith("hello")
    assert "characters left out" in heard[1]
    assert len(heard[1]) < 31_000


def test_status_counts_tokens_and_cost(llm: LlmWorld) -> None:
    plan = llm.run()

    usage = plan.status["usage"]
    assert (usage["requests"], usage["input_tokens"], usage["output_tokens"]) == (4, 400, 40)
    assert 0 < usage["cost"] < 0.1
    text = llm.agents.inside("--format", "plain", "plan", "status", plan.id).out
    assert "4 requests, 400 + 40 tokens, $0.00" in text
    assert "Everything is there." in text


def test_explain_has_what_the_model_noted_among_what_was_known(llm: LlmWorld) -> None:
    plan = llm.run()
    wanted = decisions(plan)[0]

    known = llm.agents("plan", "explain", wanted).ok().data["context"]

    assert known.keys() == {"tool", "actor_state", "model", "usage"}
    assert known["tool"] == "file.write"
    assert known["usage"]["requests"] == 1


def test_several_calls_in_one_answer_are_several_steps_and_one_request(
    llm: LlmWorld, server: ChatServer
) -> None:
    both = (WRITE, ("shell", {"command": "echo b > b.txt"}))
    server.script(calls(*both, text="Both at once."), say("done"))
    plan = llm.run()

    assert names(plan) == ["file.write a.txt", "shell echo b > b.txt"]
    assert len(server.asked) == 2
    assert [role for role, _ in server.heard()][-3:] == ["assistant", "tool", "tool"]
    plan.rollback("decision 2: shell echo b > b.txt").ok()
    plan.execute().ok()
    assert len(server.asked) == 3
    assert server.heard(2) == server.heard(1)


def test_calls_after_one_that_failed_are_not_carried_out(llm: LlmWorld, server: ChatServer) -> None:
    both = (("shell", {"command": "exit 1"}), WRITE)
    server.script(calls(*both), call("shell", command="echo c > c.txt"), say("done"))
    plan = llm.run()

    assert types(plan) == ["tool_invocation", "error_recovery"]
    assert "an earlier call failed" in server.heard(1)[-1][1]
    assert not (plan.sandbox / "a.txt").exists()


def test_calls_after_a_correction_are_not_carried_out(llm: LlmWorld, server: ChatServer) -> None:
    both = (("shell", {"command": "echo b > b.txt"}), WRITE)
    server.script(calls(*both), say("done"))
    plan = llm.run()
    words = ("--mode", "revert", "--guidance", "no a.txt", "--yes")
    llm.agents("plan", "correct", *words, decisions(plan)[1]).ok()

    assert not (plan.sandbox / "a.txt").exists()
    assert (plan.sandbox / "b.txt").exists()
    overruled, told = server.heard()[-2:]
    assert "a person said something first" in overruled[1]
    assert told == ("user", "no a.txt")


def test_it_can_say_first_how_it_means_to_go_about_it(llm: LlmWorld, server: ChatServer) -> None:
    server.script(say("Step by step."), *SCRIPT)
    plan = llm.run(actor={"strategize": True})

    assert types(plan)[0] == "strategy_choice"
    assert "tools" not in server.asked[0]
    assert spoken(server)[0] == "Step by step."
    assert plan.status["usage"]["requests"] == 5


def test_it_can_split_work_off_to_children_with_conversations_of_their_own(
    llm: LlmWorld, server: ChatServer
) -> None:
    plans = [{"name": "one", "description": "Do one"}, {"name": "two", "description": "Do two"}]
    server.will(
        calls(("spawn_subplans", {"plans": plans}), text="In two parts."),
        call("file_write", path="one", content="1"),
        say("one is done"),
        call("file_write", path="two", content="2"),
        say("two is done"),
        say("all merged"),
    )
    plan = llm.run()

    assert (plan.sandbox / "one").read_text() + (plan.sandbox / "two").read_text() == "12"
    assert types(plan) == ["subplan_spawn"]
    assert server.heard(1)[1] == ("user", "Do one")
    assert server.heard(3)[1] == ("user", "Do two")
    assert server.heard()[-1] == ("tool", "merged: one, two")
    assert plan.status["usage"]["requests"] == 6


# --- going back ---------------------------------------------------------------------------------


def test_from_every_checkpoint_it_goes_on_with_exactly_the_messages_of_that_moment(
    llm: LlmWorld, server: ChatServer
) -> None:
    plan = llm.run(rollback_policy={"max_checkpoints": 500})
    whole, result = [server.heard(index) for index in range(4)], plan.tree()

    for group in plan.groups:
        plan.rollback(group.group_id).ok()
        before = len(server.asked)
        plan.execute().ok()

        asked = [server.heard(index) for index in range(before, len(server.asked))]
        assert asked == whole[4 - len(asked) :], group.label
        assert plan.tree() == result
        assert plan.status["usage"]["requests"] == 4


def test_a_correction_is_heard_at_exactly_its_moment(llm: LlmWorld, server: ChatServer) -> None:
    plan = llm.run()
    moment = server.heard(1)
    server.script(SCRIPT[0], call("shell", "As told.", command="echo c > c.txt"), say("done"))

    words = ("--mode", "revert", "--guidance", "use c.txt, not b.txt", "--yes")
    llm.agents("plan", "correct", *words, decisions(plan)[1]).ok()

    assert server.heard(4) == [*moment, ("user", "use c.txt, not b.txt")]
    assert (plan.sandbox / "c.txt").exists()
    assert not (plan.sandbox / "b.txt").exists()
    assert (plan.sandbox / "a.txt").read_text() == "A\n"
    assert said_by_people(server) == ["Change the project", "use c.txt, not b.txt"]


def test_an_earlier_correction_forgets_the_guidance_of_a_later_one(
    llm: LlmWorld, server: ChatServer
) -> None:
    plan = llm.run()
    words = ("--mode", "revert", "--yes", "--guidance")
    llm.agents("plan", "correct", *words, "the later one", decisions(plan)[2]).ok()
    assert said_by_people(server)[-1] == "the later one"

    llm.agents("plan", "correct", *words, "the earlier one", decisions(plan)[0]).ok()

    assert said_by_people(server) == ["Change the project", "the earlier one"]
    assert plan.status["state"] == "complete"


def test_a_plan_that_had_finished_goes_on_when_it_is_told_something(
    llm: LlmWorld, server: ChatServer
) -> None:
    plan = llm.run()
    server.script(*SCRIPT, call("shell", command="echo more > more"), say("done again"))

    llm.agents("plan", "prompt", plan.id, "and one more").ok()

    assert (plan.sandbox / "more").exists()
    assert said_by_people(server)[-1] == "and one more"
    assert plan.status["result"] == "done again"


def test_guidance_can_be_carried_out_by_a_child_with_an_empty_memory(
    llm: LlmWorld, server: ChatServer
) -> None:
    plan = llm.run()
    server.will(call("shell", command="echo more > more"), say("child done"), say("done"))

    words = ("--mode", "append", "--guidance", "add more", "--yes")
    llm.agents("plan", "correct", *words, decisions(plan)[0]).ok()

    assert (plan.sandbox / "more").exists()
    assert server.heard(4) == [server.heard(0)[0], ("user", "add more")]
    assert server.heard()[-1][0] == "user"
    assert "A person had this step carried out: add more" in server.heard()[-1][1]


def test_a_step_of_a_person_takes_the_place_of_one_of_its_own(
    llm: LlmWorld, server: ChatServer
) -> None:
    plan = llm.run()
    file = llm.world.top / "step.yaml"
    file.write_text("{tool: shell, with: {command: echo mine > b.txt}}")
    server.script(SCRIPT[0], say("fine"))

    words = ("--mode", "revert", "--guidance", "mine", "--step-file", str(file), "--yes")
    llm.agents("plan", "correct", *words, decisions(plan)[1]).ok()

    assert (plan.sandbox / "b.txt").read_text() == "mine\n"
    news = said_by_people(server)
    assert news[1].startswith("A person had this step carried out")
    assert news[2] == "mine"


def test_a_validation_that_fails_goes_back_to_the_model(llm: LlmWorld, server: ChatServer) -> None:
    tests = {"command": ["test", "-e", "needed"], "validation": "required"}
    server.script(say("done"), call("shell", command="echo x > needed"), say("now it is"))
    plan = llm.run(tools={"tests": tests})

    assert types(plan) == ["validation_response", "error_recovery", "validation_response"]
    assert "The check `tests` does not pass" in said_by_people(server)[-1]
    plan("apply", "--yes").ok()


def test_messages_are_stored_once_and_go_when_nothing_leads_to_them(
    llm: LlmWorld, server: ChatServer
) -> None:
    plan = llm.run(rollback_policy={"max_checkpoints": 1})
    stored = messages(llm)
    assert len(stored) == 8
    server.script(call("shell", command="echo z > z"), say("that is all"))

    plan.rollback("start").ok()
    assert len(messages(llm)) == 8  # the rollback can be undone
    plan.execute().ok()

    # Four of the new line; two of the decision that was made in the same state as the first group.
    assert len(messages(llm)) == 6
    assert "that is all" in str(messages(llm))


def messages(llm: LlmWorld) -> list[str]:
    return [line for line in llm.world.records() if 'INSERT INTO "actor_messages"' in line]


# --- budgets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "value", "key", "more"),
    [
        ("max_steps", 2, "actor.max-steps", "9"),
        ("max_tokens", 200, "actor.max-tokens", "9999"),
        ("max_cost", 0.0003, "actor.max-cost", "1"),
    ],
)
def test_a_budget_ends_the_run_and_more_of_it_lets_it_go_on(
    llm: LlmWorld, limit: str, value: Any, key: str, more: str
) -> None:
    plan = llm.use(actor={limit: value})

    refused = plan.execute()

    assert refused.error["code"] == "budget-exhausted"
    assert key in refused.error["hint"]
    assert plan.status["state"] == "errored"
    assert plan.status["last_completed_step"] == 1
    plan("resume")
    assert plan.status["last_completed_step"] == 1
    llm.agents("config", "set", key, more).ok()
    plan("resume").ok()
    assert plan.status["usage"]["requests"] == 4
