"""A coding agent's own program as the actor: its hooks, or its pauses, become steps of the plan."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import COMMAND
from tests.support.coding_agent import AGENT, ONE, THREE, TWO, use, use_command
from tests.support.refusals import refused
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World


def chosen(plan: PlanHandle) -> list[str]:
    return [node["description"] for node in plan("tree").ok().data["tree"]["children"]]


def files(plan: PlanHandle) -> dict[str, str]:
    names = ("one.txt", "two.txt", "three.txt", "half")
    return {name: text for name in names if (text := read(plan.sandbox / name)) is not None}


def read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


# --- steps that hooks tell ------------------------------------------------------------------------


def test_each_tool_call_of_the_agent_is_a_decision_with_its_checkpoints(world: World) -> None:
    plan = use(world, ONE, TWO)
    plan.execute().ok()

    assert chosen(plan) == ["agent.Write: Write one.txt", "agent.Write: Write two.txt"]
    assert plan.reasons == [
        "decision",
        *["decision", "on_tool_write", "on_tool_write_complete"] * 2,
        "complete",
    ]
    calls = plan("artifacts").ok().data["artifacts"]
    assert [call["output"].splitlines()[0] for call in calls] == ["wrote one.txt", "wrote two.txt"]
    second = plan("tree").ok().data["tree"]["children"][1]
    told = world.agents("plan", "explain", second["id"]).ok().data
    assert "now the second" in told["rationale"]
    plan("apply", "--yes").ok()
    assert read(world.project.path / "two.txt") == "2"


def test_going_back_takes_files_and_the_agents_own_memory_back(world: World) -> None:
    plan = use(world, ONE, TWO, THREE)
    plan.execute().ok()
    after = tree_of(plan.sandbox)

    for label, there in (
        ("decision 3: Write three.txt", ["one.txt", "two.txt"]),
        ("decision 2: Write two.txt", ["one.txt"]),
        ("decision 1: Write one.txt", []),
    ):
        plan.rollback(label).ok()
        assert list(files(plan)) == there
        # Started again, it finds its notes as they were, and does only what they do not have.
        plan("resume").ok()
        assert tree_of(plan.sandbox) == after
        remembered = "".join(call["output"] for call in artifacts(plan))
        assert f"I remember {there}" in remembered


def artifacts(plan: PlanHandle) -> list[dict[str, Any]]:
    return [call for call in plan("artifacts").ok().data["artifacts"] if not call["undone"]]


def test_guidance_reaches_an_agent_that_is_corrected(world: World) -> None:
    plan = use(world, ONE, TWO)
    plan.execute().ok()
    second = plan("tree").ok().data["tree"]["children"][1]["id"]

    words = ("plan", "correct", "--yes", "--mode", "revert", "--guidance", "louder", second)
    answer = world.agents(*words).ok()

    assert files(plan) == {"one.txt": "1", "two.txt": "2louder"}
    assert answer.envelope["status"] == "ok"  # the advice was heard, so there is no warning


def test_an_agent_that_does_not_tell_the_end_of_a_call_goes_on(world: World) -> None:
    plan = use(world, {**ONE, "silent": True}, TWO)
    plan.execute().ok()

    assert files(plan) == {"one.txt": "1", "two.txt": "2"}
    assert len(chosen(plan)) == 2


# --- how it ends ----------------------------------------------------------------------------------


def test_an_agent_that_breaks_off_leaves_an_errored_plan_that_can_go_on(world: World) -> None:
    plan = use(world, ONE, {"name": "two.txt", "exit": 3})
    told = refused(plan.execute(), "actor-failed")

    assert "exit code 3" in told
    assert plan.status["state"] == "errored"
    assert files(plan) == {"one.txt": "1"}  # what was half done is undone
    assert [step["status"] for step in plan.status["progress"]] == ["complete", "failed"]
    again = plan("resume")
    assert again.error["code"] == "actor-failed"
    assert "exit code 3" in again.error["message"]


def test_a_program_that_is_not_there_is_told_as_such(world: World) -> None:
    plan = use_command(world, ["no-such-agent", "{task}"])
    assert "no-such-agent" in refused(plan.execute(), "actor-failed")


def test_an_agent_that_takes_too_long_is_ended(world: World) -> None:
    plan = use(world, ONE, {**TWO, "sleep": 60}, actor={"timeout": 4})
    begun = time.monotonic()
    refused(plan.execute(), "actor-failed")

    assert time.monotonic() - begun < 40
    assert plan.status["state"] == "errored"


def test_killed_in_the_middle_it_goes_on_where_it_was(world: World) -> None:
    plan = use(world, ONE, {**TWO, "sleep": 30})
    process = subprocess.Popen(
        [str(COMMAND), "plan", "execute", plan.id],
        cwd=world.project.path,
        env=world.agents.environ,
        stdout=subprocess.DEVNULL,
    )
    until(lambda: len(plan.groups) >= 6)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    (world.top / "agent.py").write_text(AGENT.replace('call.get("sleep", 0)', "0"))
    plan("resume").ok()
    assert files(plan) == {"one.txt": "1", "two.txt": "2"}
    done = [call["tool"] for call in artifacts(plan) if call["status"] == "succeeded"]
    assert done == ["agent.Write", "agent.Write"]


def until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


# --- steps that nobody tells ----------------------------------------------------------------------


def test_without_hooks_a_step_ends_when_nothing_moves(world: World) -> None:
    script = "echo 1 > one.txt; sleep 3; echo 2 > two.txt"
    plan = use_command(world, ["sh", "-c", script], actor={"steps": "quiet", "quiet_seconds": 0.5})
    plan.execute().ok()

    assert chosen(plan) == ["agent.wrote: one.txt", "agent.wrote: two.txt"]
    plan.rollback("decision 2: two.txt").ok()
    assert files(plan) == {"one.txt": "1\n"}
    plan.rollback("decision 1: one.txt").ok()
    assert files(plan) == {}


def test_an_agent_without_hooks_that_breaks_off_is_told_with_its_last_words(world: World) -> None:
    plan = use_command(world, ["sh", "-c", "echo no luck; exit 3"], actor={"steps": "quiet"})
    told = refused(plan.execute(), "actor-failed")

    assert "exit code 3" in told
    assert "no luck" in told
    missing = use_command(world, ["no-such-agent"], actor={"steps": "quiet"})
    assert "no-such-agent" in refused(missing.execute(), "actor-failed")


# --- hooks by hand --------------------------------------------------------------------------------


def test_outside_of_a_plan_a_hook_does_nothing(world: World) -> None:
    done = hook(world, "pre-tool", '{"tool_name": "Write"}')
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '{"tool_name": 3}', '"x"', "\udcff"])
def test_a_hook_that_cannot_be_read_blocks_the_call(
    world: World, text: str, tmp_path: Path
) -> None:
    done = hook(world, "pre-tool", text, CLEVERAGENTS_HOOKS=str(tmp_path))
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


def test_a_hook_whose_plan_is_gone_blocks_the_call(world: World, tmp_path: Path) -> None:
    done = hook(world, "pre-tool", '{"tool_name": "Write"}', CLEVERAGENTS_HOOKS=str(tmp_path))
    assert done.returncode == 2
    assert "plan" in done.stderr


def hook(world: World, kind: str, text: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(COMMAND), "hook", kind],
        input=text,
        env={**world.agents.environ, **more},
        text=True,
        errors="surrogateescape",
        capture_output=True,
        check=False,
    )


# --- with the rest --------------------------------------------------------------------------------


def test_a_validation_that_fails_goes_back_to_the_agent(world: World) -> None:
    script = (
        'agents hook pre-tool <<E\n{"tool_name": "Write", "tool_input": {"path": "a"}}\nE\n'
        'printf "%s" "$CLEVERAGENTS_GUIDANCE" > a\n'
        'agents hook post-tool <<E\n{"tool_name": "Write"}\nE\n'
    )
    check = {
        "description": "Judges",
        "command": ["grep", "-q", "failed", "a"],
        "validation": "required",
    }
    plan = use_command(world, ["sh", "-c", script], tools={"check": check})
    plan.execute().ok()

    assert "This failed: check" in (plan.sandbox / "a").read_text()
    assert plan.status["state"] == "complete"
