"""The same task by a script, by a language model and by a coding agent, with hooks and without: one
tree, one way back."""

from collections.abc import Generator
from typing import Any

import pytest
from tests.support.chat_server import ChatServer, call, say
from tests.support.coding_agent import ONE, THREE, TWO, use, use_command
from tests.support.llm_world import LlmWorld, types
from tests.support.trees import tree_of
from tests.support.world import Group, PlanHandle, World, write

CALLS = (ONE, TWO, THREE)


@pytest.fixture
def server() -> Generator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture(params=["scripted", "llm", "command", "silent"])
def plan(request: pytest.FixtureRequest, world: World, server: ChatServer) -> PlanHandle:
    files = [(item["name"], item["content"]) for item in CALLS]
    if request.param == "scripted":
        return world.run(*(write(path, content) for path, content in files))
    if request.param == "llm":
        asked = (call("file_write", "Next.", path=path, content=text) for path, text in files)
        server.script(*asked, say("Done."))
        return LlmWorld(world, server).run()
    silent = "; sleep 1.5; ".join(f"printf {content} > {path}" for path, content in files)
    quick = {"quiet_seconds": 0.3}
    made = use(world, *CALLS) if request.param == "command" else None
    plan = made or use_command(world, ["sh", "-c", silent], actor=quick)
    plan.execute().ok()
    return plan


def test_one_shape_and_a_way_back_to_every_decision(plan: PlanHandle) -> None:
    assert types(plan) == ["tool_invocation"] * 3
    # An actor that says when it is done has one state more than its steps.
    assert [reason for reason in plan.reasons if reason != "complete"] == [
        "decision",
        *["decision", "on_tool_write", "on_tool_write_complete"] * 3,
    ]
    start = plan.groups[0]
    plan.rollback(start.group_id).ok()
    before = tree_of(plan.sandbox)

    for index, group in enumerate(decisions(plan)):
        plan.rollback(group.group_id).ok()

        there = {item["name"]: item["content"] for item in CALLS[:index]}
        assert tree_of(plan.sandbox).keys() - before.keys() == {n.encode() for n in there}
        assert {name: (plan.sandbox / name).read_text() for name in there} == there
        # The actor, too, is where it was: asked now, a new checkpoint holds the same memory.
        plan("checkpoint", "create", "--label", f"look {index}").ok()
        assert memory(plan, f"look {index}") == memory(plan, group.label)


def decisions(plan: PlanHandle) -> list[Group]:
    return [group for group in plan.groups if group.label.startswith("decision ")]


def memory(plan: PlanHandle, label: str) -> Any:
    group = plan.group(label)
    shown = plan.agents("plan", "checkpoint", "show", plan.id, group.head).ok().data
    found = find(shown, "actor_state")
    assert found is not None
    return found


def find(value: Any, key: str) -> Any:
    """What stands under the key, wherever that is."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            found = find(item, key)
            if found is not None:
                return found
    return None
