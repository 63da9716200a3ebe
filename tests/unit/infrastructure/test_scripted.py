"""The scripted actor takes the steps of the action in their order, from wherever it stands."""

from collections.abc import Mapping
from typing import Any

import pytest

from cleveragents.domain.action import Action, Step, TimelineUse
from cleveragents.domain.actor_protocol import Finished, Proposal, Situation, StepOutcome
from cleveragents.domain.decision import ToolResult
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.actors.scripted import OneUse, ScriptedActor, TimelineSteps

STEPS = tuple(Step(name=name, tool="shell", arguments={"command": name}) for name in "abc")
ACTION = Action(name="demo", description="", resources=(), steps=STEPS)
PLAN = PlanId("01J000000000000000000000P1")


def asked(index: int, state: Mapping[str, Any]) -> Situation:
    return Situation(
        plan_id=PLAN, action=ACTION, step_index=index, state=state, guidance=(), recall=lambda _: ()
    )


def test_the_outline_names_the_steps() -> None:
    assert ScriptedActor().strategize(asked(0, {})).steps == ("a", "b", "c")


def test_following_its_own_state_it_takes_each_step_once() -> None:
    actor, state, taken = ScriptedActor(), {}, []

    while isinstance(said := actor.decide(asked(len(taken), state)), Proposal):
        taken.append(said.step)
        result = StepOutcome(step_index=len(taken), step=said.step, result=ToolResult())
        state = dict(actor.observe(ACTION, said.memory.state, result).state)

    assert tuple(taken) == STEPS


def test_a_proposal_says_why() -> None:
    proposal = ScriptedActor().decide(asked(1, {}))

    assert isinstance(proposal, Proposal)
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
    proposal = ScriptedActor().decide(asked(index, state))

    assert isinstance(proposal, Proposal)
    assert proposal.step.name == step


@pytest.mark.parametrize(("index", "state"), [(3, {}), (0, {"next_step": 3}), (9, {})])
def test_after_the_last_step_it_is_done(index: int, state: dict[str, Any]) -> None:
    assert isinstance(ScriptedActor().decide(asked(index, state)), Finished)


# --- on a timeline in place ---------------------------------------------------------------------


def on_a_timeline(state: Mapping[str, Any], index: int = 7) -> Situation:
    """Steps of others came before, and have the numbers."""
    use = TimelineUse(use_id="second", first_step=5, script=STEPS)
    action = Action(name="in-place", description="", resources=(), steps=(), use=use)
    return Situation(
        plan_id=PLAN, action=action, step_index=index, state=state, guidance=(), recall=lambda _: ()
    )


def test_on_a_timeline_it_counts_its_own_steps_whatever_their_numbers_are() -> None:
    actor, state, taken = OneUse(TimelineSteps()), {}, []

    while isinstance(said := actor.decide(on_a_timeline(state, 3 * len(taken))), Proposal):
        taken.append(said.step)
        result = StepOutcome(step_index=len(taken), step=said.step, result=ToolResult())
        state = dict(actor.observe(on_a_timeline({}).action, said.memory.state, result).state)

    assert tuple(taken) == STEPS
    assert state["use"] == "second"


def test_what_another_use_of_a_file_remembers_is_not_its_own() -> None:
    said = OneUse(TimelineSteps()).decide(on_a_timeline({"use": "first", "next_step": 2}))

    assert isinstance(said, Proposal)
    assert said.step.name == "a"
    assert said.memory.state == {"use": "second", "next_step": 1}
