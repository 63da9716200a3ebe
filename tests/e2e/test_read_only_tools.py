"""Tools that declare that they only read: held to it where that can be, and found out elsewhere."""

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, Step, World, write

SERVER = str(Path(__file__).parents[1] / "support" / "mcp_server.py")
LOOK: Step = {"name": "look", "tool": "look", "with": {}}
SNEAK = "echo 1 > sneaked; chmod 700 README.md; rm -f run.sh; true"


def looks(script: str, **keys: Any) -> dict[str, Any]:
    return {"look": {"command": ["sh", "-c", script], "resource": "code", **keys}}


def failure(plan: PlanHandle) -> dict[str, Any]:
    assert plan.execute().code == 1
    return plan.status["error"]


@pytest.mark.parametrize("declared", [{"read_only": True}, {"writes": False}])
def test_its_sandboxes_are_read_only(world: World, declared: dict[str, Any]) -> None:
    before = tree_of(world.run(write("a", "1")).sandbox)
    plan = world.run(write("a", "1"), LOOK, tools=looks(SNEAK, **declared))
    assert tree_of(plan.sandbox) == before
    call = plan("artifacts").ok().data["artifacts"][1]
    assert any("sneaked" in line for line in call["values"]["denied"])
    strict = world.use(LOOK, tools=looks("echo 1 > sneaked", **declared))
    assert "ended with exit code" in failure(strict)["message"]


def test_a_place_that_it_may_write_does_not_open_the_sandbox_in_it(world: World) -> None:
    plan = world.run(
        LOOK, tools=looks(SNEAK, read_only=True), confinement={"write": [str(world.top)]}
    )
    assert not (plan.sandbox / "sneaked").exists()
    assert plan("diff").ok().data["files"] == []


def test_where_it_cannot_be_held_a_write_is_an_error_with_a_group_that_holds_it(
    world: World,
) -> None:
    world.agents.environ["CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON"] = ""
    plan = world.use(write("a", "1"), LOOK, tools=looks(SNEAK, read_only=True), confinement="off")
    assert failure(plan)["message"] == (
        "look is declared read-only, and wrote README.md, run.sh, sneaked"
    )
    left = tree_of(plan.sandbox)
    plan.rollback("start").ok()
    assert not (plan.sandbox / "sneaked").exists()
    plan.rollback("error in look look").ok()
    assert tree_of(plan.sandbox) == left


def test_reading_is_no_error_anywhere(world: World) -> None:
    (world.project.path / "other.py").write_text("x = 1\n")
    (world.project.path / "main.py").write_text("import other\n")
    world.project.commit("two modules")
    script = f"cat README.md; git status; {sys.executable} main.py"
    for asked in ("preferred", "off"):
        world.run(LOOK, LOOK, tools=looks(script, read_only=True), confinement=asked)


# --- MCP servers --------------------------------------------------------------------------------


def server(*reading: str, writing: tuple[str, ...] = ()) -> dict[str, Any]:
    tools = {name: {"server": "notes", "tool": name, "read_only": True} for name in reading}
    tools |= {name: {"server": "notes", "tool": name, "writes": True} for name in writing}
    return {"mcp_servers": {"notes": {"command": [sys.executable, SERVER]}}, "tools": tools}


def noting(tool: str) -> Step:
    return {"name": tool, "tool": tool, "with": {"path": "noted", "text": "x"}}


def test_a_server_whose_tools_all_read_has_a_read_only_sandbox(world: World) -> None:
    plan = world.use(noting("note"), **server("note", "count"))
    message = failure(plan)["message"]
    assert "Read-only" in message or "Permission denied" in message or "has ended" in message
    assert not (plan.sandbox / "noted").exists()


def test_the_reading_tools_of_a_server_that_also_writes_are_checked(world: World) -> None:
    keys = server("note", "count", writing=("escape",))
    count: Step = {"name": "count", "tool": "count", "with": {}}
    escape: Step = {"name": "escape", "tool": "escape", "with": {"path": "own"}}
    plan = world.use(count, escape, noting("note"), **keys)
    error = failure(plan)
    assert error["step"] == 2
    assert error["message"] == "note is declared read-only, and wrote noted"
