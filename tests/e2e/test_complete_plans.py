"""A plan is complete together with a group that holds exactly its state, whoever its actor was."""

from collections.abc import Callable, Generator

import pytest
from tests.support.chat_server import ChatServer, call, say
from tests.support.children import child, spawn
from tests.support.coding_agent import ONE, use, use_command
from tests.support.corrections import correct, decisions, step_file
from tests.support.llm_world import LlmWorld
from tests.support.trees import tree_of
from tests.support.triggers import VARIABLE
from tests.support.world import PlanHandle, World, shell, write

LOOK = shell("true", "look")
READ = {"name": "read", "tool": "file.read", "with": {"resource": "code", "path": "README.md"}}
CHECK = {"description": "Judges", "command": ["test", "-e", "a"], "validation": "required"}


@pytest.fixture
def server() -> Generator[ChatServer]:
    with ChatServer() as running:
        yield running


def changes_nothing(plan: PlanHandle) -> None:
    """Going back to where a complete plan stands, as it is foreseen and as it is done."""
    status, before = plan.status, tree_of(plan.sandbox)
    assert status["state"] == "complete"
    head = status["last_checkpoint_id"]

    foreseen = plan("rollback", "--dry-run", "{}", head).ok().data
    done = plan.rollback(head).ok().data

    for told in (foreseen, done):
        assert told["changes_reverted"] == []
        assert told["impact"]["child_plans_invalidated"] == 0
        assert told["impact"]["decisions_after_cp"] == "0 discarded"
        assert told["impact"]["tool_calls_after_cp"] == "0 undone"
    assert tree_of(plan.sandbox) == before
    after = plan.status
    for key in ("last_completed_step", "progress", "attempt"):
        assert after[key] == status[key]
    plan.agents("store", "verify").ok()


# --- steps that are written down ------------------------------------------------------------------

SCRIPTED = {
    "writes": (write("a", "1"),),
    "reads last": (write("a", "1"), READ),
    "changes nothing last": (write("a", "1"), LOOK),
    "reads only": (READ,),
    "children last": (write("a", "1"), spawn(child("one", "echo 1 > b"), child("two", "true"))),
}


@pytest.mark.parametrize("triggers", ["default", ""])
@pytest.mark.parametrize("steps", SCRIPTED.values(), ids=SCRIPTED)
def test_the_last_group_of_a_scripted_plan(
    world: World, steps: tuple[dict[str, object], ...], triggers: str
) -> None:
    if triggers != "default":
        world.agents = world.agents.having(**{VARIABLE: triggers})
    changes_nothing(world.run(*steps))


@pytest.mark.parametrize("triggers", ["default", ""])
def test_after_a_validation(world: World, triggers: str) -> None:
    if triggers != "default":
        world.agents = world.agents.having(**{VARIABLE: triggers})
    changes_nothing(world.run(write("a", "1"), tools={"check": CHECK}))


def test_after_a_correction_that_leaves_later_steps_alone(world: World) -> None:
    plan = world.run(write("a", "1", "one"), write("b", "2", "two"))
    better = step_file(world, write("a", "better"))
    correct(plan, decisions(plan)[0], "--step-file", better).ok()
    assert (plan.sandbox / "a").read_text() == "better"
    changes_nothing(plan)


def test_after_something_was_added(world: World) -> None:
    plan = world.run(write("a", "1", "one"))
    words = ("--mode", "append", "--guidance", "also b", "--yes")
    more = step_file(world, write("b", "2", "two"))
    first = decisions(plan)[0]
    plan.agents("plan", "correct", *words, "--step-file", more, first).ok()
    assert (plan.sandbox / "b").read_text() == "2"
    changes_nothing(plan)


def test_the_group_that_a_last_write_made_is_enough(world: World) -> None:
    """Where the last group holds everything already, there is no other one."""
    plan = world.run(write("a", "1"))
    assert [group.label for group in plan.groups][-1] == "after file.write a"
    assert plan.status["last_checkpoint_id"] == plan.groups[-1].head


def test_without_any_checkpoints_a_plan_is_complete_and_its_boundary_is_its_end(
    world: World,
) -> None:
    plan = world.run(write("a", "1"), READ, rollback_policy={"enabled": False})
    assert plan.status["state"] == "complete"
    assert plan.groups == []
    plan("apply", "--yes").ok()


# --- steps that somebody else decides -------------------------------------------------------------


def test_a_model_that_has_said_its_last_word(world: World, server: ChatServer) -> None:
    server.script(call("file_write", "Now.", path="a", content="1"), say("Done."))
    changes_nothing(LlmWorld(world, server).run())


def test_a_model_that_was_told_more_and_went_on(world: World, server: ChatServer) -> None:
    server.script(call("file_write", "Now.", path="a", content="1"), say("Done."))
    plan = LlmWorld(world, server).run()
    server.script(call("file_read", "Look.", path="a"), say("Still done."))
    plan("prompt", "{}", "--guidance", "look again").ok()
    plan("resume").ok()
    changes_nothing(plan)


AGENTS: dict[str, Callable[[World], PlanHandle]] = {
    "with hooks": lambda world: use(world, ONE),
    "without a hook": lambda world: use_command(world, ["sh", "-c", "echo 1 > one.txt"]),
    "that does nothing": lambda world: use_command(world, ["true"]),
    "that commits": lambda world: use_command(
        world, ["sh", "-c", "echo 1 > one.txt; git add -A; git commit -qm one"]
    ),
    "that writes after its last hook": lambda world: use(world, {**ONE, "then": "late"}),
}


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize("triggers", ["default", ""])
def test_the_last_group_of_an_agent(
    world: World, make: Callable[[World], PlanHandle], triggers: str
) -> None:
    if triggers != "default":
        world.agents = world.agents.having(**{VARIABLE: triggers})
    plan = make(world)
    plan.execute().ok()
    changes_nothing(plan)
