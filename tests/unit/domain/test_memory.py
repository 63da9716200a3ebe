"""What an actor remembers: keys of messages that never change, and where it remembers elsewhere."""

import hashlib
from typing import Any

import pytest
from domain_builders import ACTION
from msgspec.structs import replace

from cleveragents.domain.action import Action, ActorSpec, Step
from cleveragents.domain.actor_protocol import (
    HEAD,
    UNNOTED,
    UNSAVED,
    Message,
    PlacedStep,
    caveats,
    grown,
)
from cleveragents.domain.confinement import Confinement, ConfinementMode

WRITING = Confinement(write=("~/.agent", "~/.cache"))
UNHELD = Confinement(mode=ConfinementMode.OFF, write=("~/.agent",))


@pytest.mark.parametrize(("parent", "before"), [(None, ""), ("abc", "abc")])
@pytest.mark.parametrize("body", ["hello", "grüße", "half of a pair: \ud83d"])
def test_the_key_of_a_message_is_made_of_what_came_before_and_what_it_says(
    parent: str | None, before: str, body: str
) -> None:
    """It is stored, so that another version must come to the same one."""
    expected = hashlib.sha256(f"{before}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()

    message = Message.after(parent, body)

    assert message == Message(key=expected[:40], parent=parent, body=body)


def a_program(confinement: Confinement) -> Action:
    return replace(ACTION, actor=ActorSpec(type="command"), confinement=confinement)


ELSEWHERE = "what the agent keeps in {} is no part of this, and stays as it is"


@pytest.mark.parametrize(
    ("action", "state", "told"),
    [
        (a_program(WRITING), {"x": 1}, [ELSEWHERE.format("~/.agent, ~/.cache")]),
        (a_program(UNHELD), {"x": 1}, [ELSEWHERE.format("other places than $CLEVERAGENTS_MEMORY")]),
        (a_program(Confinement()), {"x": 1}, []),
        (a_program(WRITING), {}, []),
        (a_program(WRITING), {HEAD: "abc"}, []),
        (replace(a_program(WRITING), actor=ActorSpec(type="llm")), {"x": 1}, []),
        (
            ACTION,
            {UNNOTED: ["one", "two"]},
            ["the agent had not noted yet how it ended: one, two; it is told when it goes on"],
        ),
        (
            ACTION,
            {UNSAVED: ["a.db", "b.db"]},
            ["of what the agent remembers this was too large: a.db, b.db"],
        ),
        (a_program(WRITING), {HEAD: "a", UNNOTED: ["one"], UNSAVED: ["b"]}, ["one;", "large: b"]),
    ],
)
def test_what_an_actor_would_not_remember_with_the_files_is_told(
    action: Action, state: dict[str, Any], told: list[str]
) -> None:
    found = caveats(action, state)

    assert len(found) == len(told)
    assert all(part in line for part, line in zip(told, found, strict=True))
    assert found == told or len(told) == 2


def test_a_step_that_came_later_takes_the_place_of_the_one_with_its_number() -> None:
    first, second = ACTION.steps
    new, check = Step(name="new", tool="shell"), Step(name="check", tool="shell")

    assert grown(ACTION, [PlacedStep(index=0, step=new)]).steps == (new, second)
    assert grown(ACTION, [PlacedStep(index=2, step=new)]).steps == (first, second, new)
    judged = PlacedStep(index=2, step=check, judges=True)
    assert grown(ACTION, [judged]).steps == (first, second)
    after = PlacedStep(index=3, step=new)
    assert grown(ACTION, [judged, after]).steps == (first, second, check, new)
