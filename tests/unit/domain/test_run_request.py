"""A program that a person asked for: the action that it becomes, and what that is called."""

from typing import Any

import pytest

from cleveragents.domain.action import Action, ActorSpec, ResourceSpec, Step, Validation
from cleveragents.domain.agent_presets import AgentPreset
from cleveragents.domain.confinement import Confinement
from cleveragents.domain.resource_kinds import GIT_CHECKOUT
from cleveragents.domain.run_request import (
    NO_LIMIT_SECONDS,
    Granted,
    RunRequest,
    action_of,
    described,
    name_of,
)

RESOURCES = (ResourceSpec(name="code", type=GIT_CHECKOUT.type, location="/project"),)
NOTHING = Granted()
GRANTED = Granted(network=True, environment=("KEY",), write=("/cache",))


def made(below: str = "", agent: str = "", granted: Granted = NOTHING, **fields: Any) -> Action:
    request = RunRequest(**{"command": ("bin/agent", "do it"), **fields})
    return action_of(request, AgentPreset(name=agent), RESOURCES, granted, below)


def test_a_program_is_an_action_whose_steps_it_decides_itself() -> None:
    assert made() == Action(
        name="agent",
        description="bin/agent 'do it'",
        resources=RESOURCES,
        steps=(),
        confinement=Confinement(),
        actor=ActorSpec(
            type="command",
            max_steps=10_000,
            options={
                "command": ["bin/agent", "do it"],
                "timeout": NO_LIMIT_SECONDS,
                "failure": "keep",
            },
        ),
    )


def test_what_a_person_says_more_is_in_it() -> None:
    action = made("src", "claude", GRANTED, task="the task", timeout=7.0)

    assert action.description == "the task"
    assert action.actor.options == {
        "command": ["bin/agent", "do it"],
        "timeout": 7.0,
        "failure": "keep",
        "agent": "claude",
        "folder": "src",
    }
    assert action.confinement == Confinement(network=True, environment=("KEY",), write=("/cache",))


def test_a_timeline_in_place_has_one_name_and_room_for_all_programs_to_come() -> None:
    action = made(in_place=True)

    assert (action.name, action.actor.max_steps) == ("in-place", 1_000_000)


@pytest.mark.parametrize(("below", "folder"), [("", "."), ("src", "src")])
def test_what_is_to_be_checked_runs_where_the_program_did_and_only_tells(
    below: str, folder: str
) -> None:
    action = made(below, check="make  test")

    arguments = {"folder": folder, "command": "make  test"}
    assert action.validations == (Step(name="make test", tool="check", arguments=arguments),)
    (tool,) = action.tools
    assert (tool.name, tool.resource, tool.writes) == ("check", "code", True)
    assert tool.validation is Validation.INFORMATIONAL
    assert (made().tools, made().validations) == ((), ())


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("claude", "claude"),
        ("/usr/bin/Codex_2.1", "Codex_2.1"),
        ("/usr/bin/", "bin"),
        ("./my agent!.sh", "my-agent-.sh"),
        (".-X-.", "X"),
        ("x" * 41, "x" * 40),
        ("a\udcffb", "a-b"),
        ("ü…", "run"),
        ("", "run"),
    ],
)
def test_a_plan_is_called_as_its_program(program: str, name: str) -> None:
    assert name_of(program) == name


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("a", "it's", ""), "a 'it'\\''s' ''"),
        (("sh", "-c", "echo 'a'\nb"), "sh -c 'echo '\\''a'\\'' b'"),
        (("a", "--to=b:c,d@e%f+/g.h"), "a --to=b:c,d@e%f+/g.h"),
        (("one\n two",), "'one two'"),
        (("x" * 200,), "x" * 200),
        (("x" * 201,), "x" * 199 + "…"),
        (("\udcff",), "'\\udcff'"),
    ],
)
def test_a_command_is_described_as_one_would_type_it(command: tuple[str, ...], text: str) -> None:
    assert described(command) == text


def test_what_a_program_may_do_is_told_in_words() -> None:
    assert GRANTED.in_words == "the network, KEY, writing /cache"
    assert Granted().in_words == ""
