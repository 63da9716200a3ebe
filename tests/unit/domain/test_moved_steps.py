"""Which steps a way back or forth has moved, and what each was called when it was decided."""

from typing import Any

import pytest
from domain_builders import NOW, PLAN, ulid

from cleveragents.domain.decision import Decision, DecisionType, Position
from cleveragents.domain.ids import DecisionId
from cleveragents.domain.timeline import MovedStep, is_step, moved_steps, step_name


def decided(index: int | None, chosen: str = "", **fields: Any) -> Decision:
    values: dict[str, Any] = {
        "decision_id": DecisionId(ulid(100 if index is None else index)),
        "plan_id": PLAN,
        "parent_id": None,
        "position": Position(timeline=0, seq=0),
        "type": DecisionType.TOOL_INVOCATION,
        "question": "",
        "chosen": chosen or f"file.write: write {index}",
        "phase": "execute",
        "step_index": index,
        "attempt": 1,
        "created_at": NOW,
        **fields,
    }
    return Decision(**values)


@pytest.mark.parametrize(
    ("chosen", "name"),
    [
        ("shell: run it", "run it"),
        ("shell: run: it", "run: it"),
        ("run it", "run it"),
        ("shell: ", "shell: "),
    ],
)
def test_a_step_is_called_as_it_was_without_its_tool(chosen: str, name: str) -> None:
    assert step_name(decided(0, chosen)) == name


def test_what_people_say_and_what_has_no_place_among_the_steps_has_no_number() -> None:
    assert is_step(decided(0))
    assert not is_step(decided(None))
    assert not is_step(decided(0, type=DecisionType.USER_INTERVENTION))
    assert not is_step(decided(None, type=DecisionType.USER_INTERVENTION))


def test_the_steps_that_moved_are_those_of_the_one_line_and_not_of_the_other() -> None:
    said = decided(1, decision_id=DecisionId(ulid(50)), type=DecisionType.USER_INTERVENTION)
    line = [decided(None), decided(0), said, decided(1), decided(2), decided(3)]

    assert moved_steps(line, [decided(0)], last=2) == (
        MovedStep(number=2, name="write 1"),
        MovedStep(number=3, name="write 2"),
    )
    assert moved_steps(line, line, last=2) == ()
