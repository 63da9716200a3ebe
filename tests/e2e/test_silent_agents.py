"""A coding agent that tells nothing, or not all: what it does is on record all the same."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.coding_agent import ONE, TWO, use, use_command
from tests.support.corrections import decisions
from tests.support.refusals import refused
from tests.support.triggers import VARIABLE
from tests.support.world import PlanHandle, World

QUICK = {"quiet_seconds": 0.3}
PAUSE = "sleep 1.5"


def silent(world: World, *commands: str, **actor: Any) -> PlanHandle:
    """An agent as most are that nobody has taught to call our hooks."""
    script = "; ".join(commands)
    return use_command(world, ["sh", "-c", script], actor={**QUICK, **actor})


def chosen(plan: PlanHandle) -> list[str]:
    return [node["description"] for node in plan("tree").ok().data["tree"]["children"]]


def names(plan: PlanHandle) -> set[str]:
    return {path.name for path in plan.sandbox.iterdir()} - {".git", "README.md"}


def made(plan: PlanHandle) -> set[str]:
    start = {path.name for path in Path(plan.agents.cwd).iterdir()}
    return names(plan) - start


# --- by its pauses --------------------------------------------------------------------------------


def test_an_agent_that_calls_no_hook_has_decisions_named_after_what_it_changed(
    world: World,
) -> None:
    plan = silent(
        world, "mkdir shop", "touch shop/a.py shop/b.py shop/c.py", PAUSE, "rm shop/b.py", "echo x"
    )
    plan.execute().ok()

    assert chosen(plan) == ["agent.wrote: shop/a.py, 2 more", "agent.wrote: shop/b.py"]
    assert plan.reasons == [
        "decision",
        *["decision", "on_tool_write", "on_tool_write_complete"] * 2,
        "complete",
    ]
    calls = plan("artifacts").ok().data["artifacts"]
    assert [len(call["files"]) for call in calls] == [3, 1]
    assert plan.status["execution"]["tool_calls"] == 2


def test_one_can_go_back_to_before_each_of_them_and_the_agent_begins_anew(world: World) -> None:
    plan = silent(world, "touch one", PAUSE, "touch two")
    plan.execute().ok()

    plan.rollback("decision 2: two").ok()
    assert made(plan) == {"one"}
    plan.rollback("decision 1: one").ok()
    assert made(plan) == set()
    # What it had done was never decided beforehand: there is nothing that waits to be done.
    assert chosen(plan) == []
    plan("resume").ok()
    assert made(plan) == {"one", "two"}
    assert chosen(plan) == ["agent.wrote: one", "agent.wrote: two"]


def test_going_back_to_after_the_first_keeps_it(world: World) -> None:
    plan = silent(world, "touch one", PAUSE, "touch two")
    plan.execute().ok()
    plan.rollback("after agent.wrote one").ok()
    assert made(plan) == {"one"}
    assert chosen(plan) == ["agent.wrote: one"]


def test_a_silent_step_is_corrected_like_any_other(world: World) -> None:
    plan = silent(world, 'printf "%s" "$CLEVERAGENTS_GUIDANCE" > one', PAUSE, "touch two")
    plan.execute().ok()
    words = ("plan", "correct", "--yes", "--mode", "revert", "--guidance", "louder")
    world.agents(*words, decisions(plan)[0]).ok()

    assert (plan.sandbox / "one").read_text() == "louder"
    (again,) = plan("tree").ok().data["tree"]["children"]
    assert again["description"] == "louder"
    done = [node["description"] for node in again["children"]]
    assert done == ["agent.wrote: one", "agent.wrote: two"]


def test_it_is_stopped_while_it_is_looked_at_and_its_memory_is_kept(world: World) -> None:
    note = 'echo {} >> "$CLEVERAGENTS_MEMORY/notes"; cat "$CLEVERAGENTS_MEMORY/notes"'
    plan = silent(world, "touch one", note.format(1), PAUSE, "touch two", note.format(2))
    plan.execute().ok()
    assert [call["output"] for call in plan("artifacts").ok().data["artifacts"]] == ["1", "1\n2"]

    plan.rollback("after agent.wrote one").ok()
    plan("resume").ok()
    assert "1\n1\n2" in plan("artifacts").ok().data["artifacts"][-1]["output"]


def test_more_pauses_than_steps_are_allowed_do_not_end_it(world: World) -> None:
    commands = [word for n in range(3) for word in (f"touch {n}", PAUSE)]
    plan = silent(world, *commands, max_steps=2)
    plan.execute().ok()
    assert len(chosen(plan)) == 3


@pytest.mark.parametrize("triggers", ["", "before_step,after_step", "on_tool_write"])
def test_triggers_are_obeyed(world: World, triggers: str) -> None:
    world.agents = world.agents.having(**{VARIABLE: triggers})
    plan = silent(world, "touch one")
    plan.execute().ok()

    wanted = triggers.split(",") if triggers else []
    before = [name for name in wanted if name == "before_step"]
    write = [name for name in wanted if name == "on_tool_write"]
    after = [name for name in wanted if name == "after_step"]
    assert plan.reasons == ["decision", *before, "decision", *write, *after, "complete"]
    plan.rollback("decision 1: one").ok()
    assert made(plan) == set()


def test_without_checkpoints_it_runs_and_leaves_none(world: World) -> None:
    argv = ["sh", "-c", "touch one"]
    plan = use_command(world, argv, actor=QUICK, rollback_policy={"enabled": False})
    plan.execute().ok()
    assert plan.groups == []
    assert chosen(plan) == ["agent.wrote: one"]


# --- beside its hooks -----------------------------------------------------------------------------


def test_what_it_does_beside_its_hooks_is_a_step_of_its_own(world: World) -> None:
    plan = use(world, {**ONE, "then": "between"}, {**TWO, "then": "late"})
    plan.execute().ok()

    assert chosen(plan) == [
        "agent.Write: Write one.txt",
        "agent.wrote: between",
        "agent.Write: Write two.txt",
        "agent.wrote: late",
    ]
    plan.rollback("decision 4: late").ok()
    assert made(plan) == {"one.txt", "between", "two.txt"}
    plan.rollback("decision 2: between").ok()
    assert made(plan) == {"one.txt"}


def test_what_it_says_before_a_call_is_the_reason_of_that_call(world: World) -> None:
    plan = use(world, {**ONE, "then": "between"}, TWO)
    plan.execute().ok()
    second = plan("tree").ok().data["tree"]["children"][2]
    told = world.agents("plan", "explain", second["id"]).ok().data
    assert "now the second" in told["rationale"]


def test_a_commit_that_changes_no_file_is_a_step_too(world: World) -> None:
    plan = silent(world, "git commit -q --allow-empty -m empty")
    plan.execute().ok()
    assert chosen(plan) == ["agent.wrote: the repository of code"]


# --- how it ends ----------------------------------------------------------------------------------


def test_one_that_breaks_off_leaves_what_it_did_since_its_last_pause_to_be_undone(
    world: World,
) -> None:
    plan = silent(world, "touch one", PAUSE, "touch two; exit 3")
    refused(plan.execute(), "actor-failed")

    assert plan.status["state"] == "errored"
    assert chosen(plan) == ["agent.wrote: one"]
    assert plan.groups[-1].reason == "on_error"
    assert plan("resume").error["code"] == "actor-failed"
    assert chosen(plan) == ["agent.wrote: one"]
    plan.rollback("after agent.wrote one").ok()
    assert made(plan) == {"one"}


def test_its_work_is_applied_with_everything_on_record(world: World) -> None:
    plan = silent(world, "touch one", PAUSE, "touch two")
    plan.execute().ok()
    plan("apply", "--yes").ok()
    assert (world.project.path / "one").exists()
    assert (world.project.path / "two").exists()


# --- its words ------------------------------------------------------------------------------------


def test_what_it_said_before_it_rested_is_part_of_its_result(world: World) -> None:
    plan = silent(world, "echo the first words", PAUSE, "echo the last words")
    plan.execute().ok()

    assert plan.status["result"].splitlines() == ["the first words", "the last words"]


def test_what_is_on_record_with_a_step_is_not_said_twice(world: World) -> None:
    plan = silent(world, "echo the first words", "touch one", PAUSE, "echo the last words")
    plan.execute().ok()

    assert plan("artifacts").ok().data["artifacts"][0]["output"] == "the first words"
    assert plan.status["result"] == "the last words"


@pytest.mark.parametrize("end", ["exit 3", "sleep 60"])
def test_what_it_said_before_it_rested_tells_why_it_failed(world: World, end: str) -> None:
    plan = silent(world, "echo no key for the model", PAUSE, end, timeout=8)

    assert "no key for the model" in refused(plan.execute(), "actor-failed")
