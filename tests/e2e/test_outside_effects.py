"""What a step does outside its sandbox happens once, or somebody was asked."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.world import PlanHandle, Step, World, action, wait_for, write

MAIL = "a mail to the boss"


class Post:
    """Tools that send and recall mails: the outbox is a file outside of everything."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.outbox = world.beside / "outbox"
        self.gate = world.beside / "gate"
        self.reached = world.beside / "reached"
        self.outbox.touch()

    def tool(self, script: str, **keys: Any) -> dict[str, Any]:
        return {"command": ["sh", "-c", script, "sh", "{to}"], "writes": False, **keys}

    @property
    def tools(self) -> dict[str, Any]:
        send = f'echo "to $1" >> {self.outbox}; echo id-$1'
        wait = f"touch {self.reached}; while ! test -e {self.gate}; do sleep 0.05; done"
        recall = ["sh", "-c", f'echo "recall $1 $2" >> {self.outbox}', "sh", "{to}", "{output}"]
        effect = {"side_effects": [MAIL]}
        return {
            "mail": self.tool(send, **effect),
            "slow-mail": self.tool(f"{send}; {wait}", **effect),
            "put": self.tool(send, **effect, idempotent=True),
            "bad": self.tool(f"{send}; test -e {self.gate}", **effect),
            "post": self.tool(send, **effect, compensate="recall"),
            "own-post": self.tool(send, **effect, compensate="recall", reads=[]),
            "recall": {"command": recall, "writes": False},
            "wrong": self.tool(send, **effect, compensate="cannot"),
            "cannot": {"command": ["false"], "writes": False},
        }

    def use(self, *tools: str, **keys: Any) -> PlanHandle:
        steps: list[Step] = [
            {"name": f"{tool} {number}", "tool": tool, "with": {"to": str(number)}}
            for number, tool in enumerate(tools)
        ]
        return self.world.use(*steps, write("end.txt", "x"), tools=self.tools, **keys)

    @property
    def sent(self) -> list[str]:
        return self.outbox.read_text().splitlines()


@pytest.fixture
def post(world: World) -> Post:
    return Post(world)


def states(plan: PlanHandle) -> list[str]:
    return [effect["state"] for effect in plan("effects").ok().data["effects"]]


def kill_in_step(post: Post, plan: PlanHandle, number: int = signal.SIGKILL) -> None:
    process = post.world.agents.start("--format", "json", "plan", "execute", plan.id)
    wait_for(post.reached.exists)
    os.kill(process.pid, number)
    process.communicate(timeout=20)


def test_a_killed_step_that_reached_outside_waits_for_a_word(post: Post) -> None:
    plan = post.use("slow-mail")
    kill_in_step(post, plan)
    assert states(plan) == ["uncertain"]
    post.gate.touch()

    for command in ("resume", "execute"):
        answer = plan(command)
        assert (answer.code, answer.error["code"]) == (1, "effect-uncertain")
        assert MAIL in answer.error["message"]
        assert f"agents plan resume --effects repeat {plan.id}" in answer.error["hint"]
        assert f"agents plan resume --effects skip {plan.id}" in answer.error["hint"]
    assert post.sent == ["to 0"]
    status = plan.status
    assert (status["state"], status["last_completed_step"]) == ("queued", -1)
    assert status["error"]["step"] == 0
    assert status["error"]["recoverable"]


@pytest.mark.parametrize(
    ("word", "sent"), [("repeat", ["to 0", "to 0"]), ("skip", ["to 0"])], ids=["repeat", "skip"]
)
@pytest.mark.parametrize("command", ["resume", "execute"])
def test_the_word_is_obeyed(post: Post, word: str, sent: list[str], command: str) -> None:
    plan = post.use("slow-mail")
    kill_in_step(post, plan)
    post.gate.touch()

    answer = plan(command, "--effects", word).ok()

    assert answer.data["state"] == "complete"
    assert post.sent == sent
    assert (plan.sandbox / "end.txt").exists()


def test_an_unknown_word_is_a_usage_error(post: Post) -> None:
    plan = post.use("mail")
    assert plan("resume", "--effects", "forget").code == 2
    assert post.sent == []


def test_an_idempotent_tool_is_just_run_again(post: Post) -> None:
    plan = post.use("put")
    plan.execute().ok()
    plan.rollback("start").ok()
    plan.execute().ok()
    assert post.sent == ["to 0", "to 0"]


def test_execute_after_a_rollback_sends_nothing_twice(post: Post) -> None:
    plan = post.use("mail", "mail")
    plan.execute().ok()
    answer = plan.rollback("start").ok()
    assert f"cannot be undone: step 1 (mail): {MAIL}" in answer.envelope["messages"]

    answer = plan.execute()
    assert answer.error["code"] == "effect-already-done"
    assert post.sent == ["to 0", "to 1"]

    shown = plan("resume", "--dry-run").ok()
    assert [(e["step"], e["state"], e["would"]) for e in shown.data["effects"]] == [
        (0, "done", "stop"),
        (1, "done", "stop"),
    ]
    assert any("would stop there" in text for text in shown.envelope["messages"])

    plan("execute", "--effects", "skip").ok()
    assert post.sent == ["to 0", "to 1"]
    assert states(plan) == ["done", "done", "skipped", "skipped"]
    outputs = [a["output"] for a in plan("artifacts").data["artifacts"] if not a["undone"]]
    assert outputs[:2] == ["id-0\n", "id-1\n"]


def test_a_failed_mail_may_have_been_sent(post: Post) -> None:
    plan = post.use("bad")
    answer = plan.execute()
    assert answer.error["code"] == "step-failed"
    assert states(plan) == ["uncertain"]
    post.gate.touch()
    assert plan("resume").error["code"] == "effect-uncertain"
    plan("resume", "--effects", "repeat").ok()
    assert post.sent == ["to 0", "to 0"]


def test_a_command_that_is_not_there_sent_nothing_and_may_be_tried_again(
    post: Post, world: World
) -> None:
    program = world.top / "program"
    tools = {"late": {"command": [str(program)], "side_effects": [MAIL]}}
    plan = world.use({"name": "s", "tool": "late"}, tools=tools)
    assert plan.execute().code == 1
    assert states(plan) == []
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    plan("resume").ok()


def test_a_rollback_recalls_what_can_be_recalled_newest_first(post: Post) -> None:
    plan = post.use("post", "post", "mail")
    plan.execute().ok()

    answer = plan.rollback("start").ok()

    assert post.sent == ["to 0", "to 1", "to 2", "recall 1 id-1", "recall 0 id-0"]
    told = answer.envelope["messages"]
    assert f"compensated: step 1 (post): {MAIL}" in told
    assert f"cannot be undone: step 3 (mail): {MAIL}" in told
    assert states(plan) == ["compensated", "compensated", "done"]
    assert not (plan.sandbox / "end.txt").exists()

    undone = plan.rollback("before rollback to start").ok()
    assert any("not done again" in text for text in undone.envelope["messages"])
    assert len(post.sent) == 5


def test_a_correction_recalls_what_its_steps_sent_and_nothing_else(post: Post) -> None:
    plan = post.use("own-post", "own-post", "own-post")
    plan.execute().ok()
    middle = plan("tree").ok().data["tree"]["children"][1]["id"]
    words = ("--mode", "revert", "--guidance", "again", "--yes")

    told = post.world.agents("plan", "correct", *words, middle).ok().envelope["messages"]

    assert post.sent == ["to 0", "to 1", "to 2", "recall 1 id-1", "to 1"]
    assert f"compensated: step 2 (own-post): {MAIL}" in told
    assert states(plan) == ["done", "compensated", "done", "done"]


def test_a_correction_recalls_what_may_have_built_on_it_and_sends_it_again(post: Post) -> None:
    plan = post.use("post", "post")
    plan.execute().ok()
    first = plan("tree").ok().data["tree"]["children"][0]["id"]
    words = ("--mode", "revert", "--guidance", "again", "--yes")

    post.world.agents("plan", "correct", *words, first).ok()

    assert post.sent == ["to 0", "to 1", "recall 1 id-1", "recall 0 id-0", "to 0", "to 1"]


def test_a_recall_that_fails_is_told_and_the_rollback_goes_on(post: Post) -> None:
    plan = post.use("wrong")
    plan.execute().ok()

    answer = plan.rollback("start").ok()

    assert answer.envelope["status"] == "warn"
    assert any("its compensation cannot failed" in text for text in answer.envelope["messages"])
    assert plan.status["last_completed_step"] == -1
    assert states(plan) == ["uncertain"]
    assert plan.execute().error["code"] == "effect-uncertain"


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
def test_a_rollback_killed_in_a_recall_is_finished_by_the_next_command(
    post: Post, world: World, *, idempotent: bool
) -> None:
    script = f"echo recall >> {post.outbox}; touch {post.reached}; test -e {post.gate} || sleep 20"
    tools = {
        "post": {**post.tools["post"], "compensate": "recall"},
        "recall": {"command": ["sh", "-c", script], "writes": False, "idempotent": idempotent},
    }
    plan = world.use({"name": "p", "tool": "post", "with": {"to": "0"}}, tools=tools)
    plan.execute().ok()
    process = world.agents.start("plan", "rollback", "--yes", plan.id, "start")
    wait_for(post.reached.exists)
    process.kill()
    process.communicate()
    assert states(plan) == ["compensating"]
    post.gate.touch()

    answer = world.agents("plan", "checkpoint", "create", "--label", "x", plan.id).ok()

    assert "finished the interrupted rollback" in answer.err
    assert plan.status["last_completed_step"] == -1
    assert post.sent.count("recall") == (2 if idempotent else 1)
    assert states(plan) == ["compensated" if idempotent else "uncertain"]
    assert ("compensated:" if idempotent else "may have happened:") in answer.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_an_interruption_says_what_may_have_happened_outside(post: Post, number: int) -> None:
    plan = post.use("slow-mail")
    process = post.world.agents.start("--format", "json", "plan", "execute", plan.id)
    wait_for(post.reached.exists)
    os.kill(process.pid, number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert MAIL in json.loads(out)["data"]["error"]["message"]
    assert states(plan) == ["uncertain"]


def test_the_ledger_is_shown_to_people_too(post: Post) -> None:
    plan = post.use("mail", "bad")
    assert plan.execute().code == 1
    plan.rollback("decision 1: mail 0").ok()
    shown = post.world.agents.inside("plan", "effects", plan.id, "--format", "plain")
    assert MAIL in shown.out
    assert "its step was rolled back" in shown.out
    assert "nobody knows whether this happened" in shown.out + shown.err
    row = plan("effects").data["effects"][0]
    assert (row["tool"], row["arguments"], row["output"]) == ("mail", {"to": "0"}, "id-0\n")
    assert row["undone"]
    empty = post.world.use(write("a", "1"))
    shown = post.world.agents.inside("plan", "effects", empty.id, "--format", "plain")
    assert "no step has reached outside" in shown.out


# --- trying again -------------------------------------------------------------------------------


def flaky(count: Path, good_at: int) -> str:
    return f"echo x >> {count}; echo half >> half.txt; test $(wc -l < {count}) -ge {good_at}"


def retrying(world: World, good_at: int, **keys: Any) -> PlanHandle:
    count = world.beside / "count"
    step = {"name": "flaky", "tool": "shell", "with": {"command": flaky(count, good_at)}}
    return world.use(step, **keys)


def test_a_flaky_step_is_tried_again_from_where_it_began(world: World) -> None:
    plan = retrying(world, 3, max_retries_per_step=2)
    plan.execute().ok()
    assert (plan.sandbox / "half.txt").read_text() == "half\n"
    calls = plan("artifacts").data["artifacts"]
    assert [call["status"] for call in calls] == ["failed", "failed", "succeeded"]
    assert plan.reasons.count("on_error") == 0


def test_the_setting_counts_where_the_action_says_nothing(world: World) -> None:
    agents = world.agents.having(CLEVERAGENTS_EXECUTE_MAX_RETRIES_PER_STEP="1")
    plan = retrying(world, 3)
    assert agents("plan", "execute", plan.id).code == 1
    assert len(plan("errors").data["failures"]) == 2
    assert plan.reasons.count("on_error") == 1
    other = retrying(world, 99, max_retries_per_step=0)
    assert agents("plan", "execute", other.id).code == 1
    assert len(other("errors").data["failures"]) == 1


def test_a_step_that_takes_too_long_is_tried_again(world: World) -> None:
    count = world.beside / "count"
    command = f"echo x >> {count}; test $(wc -l < {count}) -ge 2 || sleep 20"
    step = {"name": "s", "tool": "shell", "with": {"command": command, "timeout": 0.5}}
    plan = world.run(step, max_retries_per_step=1)
    assert [c["status"] for c in plan("artifacts").data["artifacts"]] == ["failed", "succeeded"]


def test_a_mail_is_never_tried_again_by_itself(post: Post) -> None:
    plan = post.use("bad", max_retries_per_step=5)
    assert plan.execute().code == 1
    assert post.sent == ["to 0"]


def test_a_step_killed_between_two_tries_is_done_once(world: World) -> None:
    count = world.beside / "count"
    step = {"name": "s", "tool": "shell", "with": {"command": flaky(count, 4)}}
    plan = world.use(step, max_retries_per_step=9)
    process: subprocess.Popen[bytes] = world.agents.start("plan", "execute", plan.id)
    wait_for(lambda: count.exists() and len(count.read_text()) >= 4)
    process.kill()
    process.communicate()
    plan("resume").ok()
    assert (plan.sandbox / "half.txt").read_text() == "half\n"


# --- in child plans -----------------------------------------------------------------------------


def with_child(post: Post, tool: str) -> PlanHandle:
    step = {"name": "send", "tool": tool, "with": {"to": "0"}}
    spawn = {"name": "spawn", "subplans": {"plans": [{"name": "kid", "steps": [step]}]}}
    return post.world.use(write("a", "1"), spawn, tools=post.tools)


def test_new_children_after_a_rollback_know_what_the_old_ones_did_outside(post: Post) -> None:
    plan = with_child(post, "mail")
    plan.execute().ok()
    told = plan.rollback("start").ok().envelope["messages"]
    assert f"cannot be undone: child kid, step 1 (mail): {MAIL}" in told

    answer = plan.execute()

    assert answer.code == 1
    assert "already had its effect" in plan.status["error"]["message"]
    assert post.sent == ["to 0"]
    plan("resume", "--effects", "skip").ok()
    assert post.sent == ["to 0"]


def test_the_word_given_to_a_parent_reaches_its_children(post: Post) -> None:
    plan = with_child(post, "mail")
    plan.execute().ok()
    plan.rollback("start").ok()
    plan("execute", "--effects", "repeat").ok()
    assert post.sent == ["to 0", "to 0"]


def test_a_rollback_of_the_parent_compensates_what_its_children_did(post: Post) -> None:
    plan = with_child(post, "post")
    plan.execute().ok()
    told = plan.rollback("start").ok().envelope["messages"]
    assert f"compensated: child kid, step 1 (post): {MAIL}" in told
    assert post.sent == ["to 0", "recall 0 id-0"]
    undone = plan.rollback("before rollback to start").ok().envelope["messages"]
    assert any("not done again: child kid" in text for text in undone)
    plan.rollback("start").ok()
    plan.execute().ok()
    assert post.sent == ["to 0", "recall 0 id-0", "to 0"]


def test_a_child_that_needs_checkpoints_it_cannot_have_is_refused_with_the_plan(
    world: World,
) -> None:
    kid = {"name": "kid", "steps": [write("a", "1")]}
    fixed = {"code": {"type": "git-checkout", "path": ".", "checkpointable": False}}
    spawn = {"name": "spawn", "subplans": {"plans": [kid]}}
    path = world.write_action(action(spawn, resources=fixed))
    answer = world.agents("plan", "use", path)
    assert answer.error["code"] == "action-invalid"
    assert "of which no checkpoint can be made" in answer.error["message"]
