"""The scripted actor takes the steps of the action in their order, from wherever it stands."""

from typing import Any

import pytest

from cleveragents.domain.action import Action, Step
from cleveragents.infrastructure.actors.scripted import ScriptedActor

STEPS = tuple(Step(name=name, tool="shell", arguments={"command": name}) for name in "abc")
ACTION = Action(name="demo", description="", resources=(), steps=STEPS)


def test_the_outline_names_the_steps() -> None:
    assert list(ScriptedActor().outline(ACTION)) == ["a", "b", "c"]


def test_following_its_own_state_it_takes_each_step_once() -> None:
    actor, state, taken = ScriptedActor(), {}, []

    while (proposal := actor.decide(ACTION, len(taken), state)) is not None:
        taken.append(proposal.step)
        state = dict(proposal.actor_state)

    assert tuple(taken) == STEPS


def test_a_proposal_says_why() -> None:
    proposal = ScriptedActor().decide(ACTION, 1, {})

    assert proposal is not None
    assert proposal.question == "What is step 2 of 3?"
    assert proposal.rationale
    assert proposal.confidence == 1.0


@pytest.mark.parametrize(
    ("index", "state", "step"),
    [(0, {}, "a"), (2, {}, "c"), (0, {"next_step": 2}, "c"), (2, {"next_step": 0}, "a")],
)
def test_its_memory_wins_over_the_number_of_the_step(
    index: int, state: dict[str, Any], step: str
) -> None:
    proposal = ScriptedActor().decide(ACTION, index, state)

    assert proposal is not None
    assert proposal.step.name == step


@pytest.mark.parametrize(("index", "state"), [(3, {}), (0, {"next_step": 3}), (9, {})])
def test_after_the_last_step_it_is_done(index: int, state: dict[str, Any]) -> None:
    assert ScriptedActor().decide(ACTION, index, state) is None
