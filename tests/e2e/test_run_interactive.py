"""An agent that one talks to at a terminal, from its first prompt to what becomes of its work."""

import os

import pytest
from tests.support.agents import COMMAND
from tests.support.full_screens import full_screen
from tests.support.stand_ins.installed import install
from tests.support.terminals import Terminal
from tests.support.world import PlanHandle, World

DOWN, ENTER = "\x1b[B", "\r"


@pytest.fixture
def path(world: World) -> str:
    folder = install(world.top / "bin", "claude")
    return os.pathsep.join([str(folder), world.agents.environ["PATH"]])


def plan_of(world: World) -> PlanHandle:
    return PlanHandle(world.agents, world.agents("status").ok().data["plan_id"])


def say(at: Terminal, words: str) -> None:
    at.type(f"{words}\n")
    at.wait_for("answered")
    at.wait_for("claude> ")


def talked_with(world: World, path: str) -> Terminal:
    """In a shell with jobs, as people have it: it is resized, interrupted, stopped and resumed."""
    at = Terminal(world, "bash", "--norc", "-i", PS1="shell> ", PATH=path)
    at.wait_for("shell> ")
    at.type(f"{COMMAND} run -- claude\n")
    at.wait_for("claude> ")
    say(at, "write a.txt")
    at.resize(20, 70)
    at.wait_for("size 70 20")
    at.type("half a thought\x03")
    at.wait_for("Interrupted by user")
    say(at, "unannounced one.txt")
    say(at, "unannounced two.txt")
    at.type("\x1a")
    at.wait_for("Stopped")
    at.wait_for("shell> ")
    at.type("fg\n")
    at.wait_until_handed_over()
    say(at, "shell echo out loud; echo b > b.txt")
    at.type("/exit\n")
    return at


def test_each_call_is_a_group_and_what_becomes_of_it_is_typed(world: World, path: str) -> None:
    at = talked_with(world, path)
    at.wait_for("apply it (a)")
    at.type("k\n")
    at.wait_for("shell> ")
    at.type("exit\n")
    at.code()
    plan = plan_of(world)

    steps = [item["step"] for item in plan.status["progress"]]
    assert steps == [
        *("Write a.txt", "one.txt", "two.txt"),
        "Bash echo out loud; echo b > b.txt",
    ]
    said = plan("artifacts").ok().out
    assert "out loud" in said
    assert "Interrupted by user" in said, "what it printed between its calls is kept too"

    world.agents("undo").ok()
    assert not (plan.sandbox / "b.txt").exists()
    with full_screen(world, "rewind") as screen:
        screen.shows("● here")
        screen.press(DOWN)
        screen.shows("> 2")
        screen.press(ENTER)
        screen.shows("takes back")
        screen.press("r")
        assert screen.left() == 0
    assert (plan.sandbox / "one.txt").exists()
    assert not (plan.sandbox / "two.txt").exists()
    world.agents("apply", "--yes").ok()
    assert (world.project.path / "a.txt").exists()
    assert not (world.project.path / "b.txt").exists()
