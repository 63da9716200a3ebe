"""MCP servers that say too much, too deep, or not what the protocol says: each is told as what it
is, with its size, and no plan is stuck or broken by it."""

import sys
from pathlib import Path

import pytest
from tests.support.world import PlanHandle, World

SERVER = str(Path(__file__).parents[1] / "support" / "odd_mcp_server.py")


def use(
    world: World, way: str, size: int = 0, *, timeout: float = 60, text: str = ""
) -> PlanHandle:
    command = [sys.executable, SERVER, way, str(size)]
    return world.use(
        {"name": "ask it", "tool": "ask", "with": {"text": text}},
        mcp_servers={"odd": {"command": command}},
        tools={"ask": {"server": "odd", "tool": "ask", "timeout": timeout}},
    )


def refusal(plan: PlanHandle) -> str:
    """What is said of the step that failed; told again after a resume, which is no other state."""
    refused = plan.execute()
    assert (refused.code, refused.error["code"]) == (1, "step-failed"), refused.envelope
    assert plan.status["state"] == "errored"
    return refused.error["message"]


# --- too deep -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["structured", "content", "error"])
@pytest.mark.parametrize("depth", [200, 700, 900, 960, 100_000])
def test_an_answer_that_is_nested_too_deeply_is_refused_in_words(
    world: World, way: str, depth: int
) -> None:
    plan = use(world, way, depth)

    assert "nested more than 100 levels" in refusal(plan)
    assert plan("resume").error["code"] == "step-failed"
    plan("errors").ok()
    plan.rollback("start").ok()


@pytest.mark.parametrize("shape", ["json", "yaml", "plain"])
def test_what_is_taken_can_be_shown(world: World, shape: str) -> None:
    plan = use(world, "structured", 90)
    plan.execute().ok()

    shown = world.agents.inside("--format", shape, "plan", "artifacts", plan.id)

    assert (shown.code, shown.err) == (0, "")


# --- too much -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["flood", "pings"])
def test_a_flood_ends_in_time_and_is_told_with_its_size(world: World, way: str) -> None:
    told = refusal(use(world, way, timeout=3))

    assert "the MCP server `odd`" in told
    assert "bytes: " in told
    assert " messages" in told


def test_an_answer_without_an_end_is_told_with_its_size(world: World) -> None:
    told = refusal(use(world, "endless"))

    assert "bytes of one without an end" in told
    assert "not the protocol" not in told


def test_one_that_took_too_long_says_how_much_had_come(world: World) -> None:
    told = refusal(use(world, "slow", 20_000_000, timeout=8))

    assert "stopped after 8 seconds" in told
    assert "20000012 bytes" in told


def test_a_large_answer_is_taken_and_its_end_kept(world: World) -> None:
    plan = use(world, "says", 20_000_000)
    plan.execute().ok()

    output = plan("artifacts").ok().data["artifacts"][0]["output"]
    assert output.startswith("[18951424 bytes left out]")


@pytest.mark.parametrize("way", ["fails", "complains"])
def test_a_long_complaint_is_shortened(world: World, way: str) -> None:
    told = refusal(use(world, way, 5_000_000))

    assert "left out]" in told
    assert len(told) < 3000


def test_a_server_that_does_not_listen_is_not_waited_for_without_end(world: World) -> None:
    told = refusal(use(world, "deaf", timeout=3, text="x" * 1_000_000))

    assert "stopped after 3 seconds" in told


# --- not the protocol ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "way",
    [
        "tools that are none",
        "tools without names",
        "pages without an end",
        "a cursor that is none",
    ],
)
def test_a_list_of_tools_that_is_none_is_told(world: World, way: str) -> None:
    assert "not the protocol: a list of tools" in refusal(use(world, way))
