"""What people are shown of a value: words that only some values bring about."""

from typing import Any

import pytest

from cleveragents.application.services.rollback.unchecked_steps import UncheckedStep
from cleveragents.cli.render.blocks import Cell, Fields
from cleveragents.cli.views import tools, unchecked, words
from cleveragents.domain.action import ToolSpec
from cleveragents.domain.ids import DecisionId, PlanId


def facts(**keys: Any) -> dict[str, str]:
    """What `tool show` says of a tool, by the names of the lines."""
    block = tools.shown(ToolSpec(name="mine", **keys), ["code"]).blocks[0]
    assert isinstance(block, Fields)
    return {name: text.text if isinstance(text, Cell) else text for name, text in block.rows}


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ({"command": ("ls", "-l")}, {"command": ["ls", "-l"]}),
        ({"python": "mine:work"}, {"python": "mine:work"}),
        ({"server": "files", "remote": "read"}, {"server": "files", "tool": "read"}),
        ({}, "built-in"),
    ],
)
def test_it_is_told_what_carries_a_tool_out(keys: dict[str, Any], kind: object) -> None:
    assert tools.shown(ToolSpec(name="mine", **keys), ["code"]).data["kind"] == kind


def test_what_nobody_declared_of_a_tool_is_told_as_such() -> None:
    told = facts(open_ended=True)

    assert told["reads"] == "anything, as far as is known"
    assert told["arguments"] == "whatever it takes; it has not declared any"
    assert (told["writes"], told["what it does"], told["outside effects"]) == ("no", "-", "none")


def test_what_a_tool_does_outside_is_told_with_what_undoes_it() -> None:
    told = facts(compensate="refund", network=True, idempotent=True, reads=())

    assert told["undone by"] == "refund"
    assert told["outside effects"] == "what refund undoes"
    assert told["needs"] == "confinement: {network: true}"
    assert told["may run again"] == "yes"
    assert told["reads"] == "nothing of the sandboxes"


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        ({"write_scope": ("a", "b")}, "yes, in a, b"),
        ({"resource": "docs"}, "yes, in docs"),
        ({}, "yes, in the resource it is called on"),
    ],
)
def test_it_is_told_where_a_tool_writes(keys: dict[str, Any], where: str) -> None:
    assert facts(writes=True, **keys)["writes"] == where


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (2_500_000, "2.5 MB"),
        (7 * 10**9, "7.0 GB"),
        (3 * 10**12, "3.0 TB"),
        (4 * 10**15, "4000.0 TB"),
    ],
)
def test_a_size_is_told_in_the_largest_unit_that_fits(count: int, text: str) -> None:
    assert words.size(count) == text


def steps(number: int) -> list[UncheckedStep]:
    return [
        UncheckedStep(
            plan_id=PlanId("01M7N64F4J0S8C53YHZZFF82MA"),
            child="",
            step_index=index,
            step=f"s{index}",
            decision_id=DecisionId("01M7N64F4J0S8C53YHZZFF82MB"),
            why="nobody looked",
        )
        for index in range(number)
    ]


def test_few_unchecked_steps_are_told_with_why_and_what_to_type() -> None:
    (told,) = unchecked.warnings(steps(1))
    assert "step 1 (s0) is unchecked: nobody looked" in told
    assert "agents plan correct" in told


def test_many_unchecked_steps_are_told_in_one_sentence() -> None:
    (told,) = unchecked.warnings(steps(40))
    assert told.startswith("40 steps are unchecked: ")
    assert "s39" in told


def test_a_question_names_what_is_unchecked() -> None:
    assert unchecked.although([]) == ""
    assert "s0" in unchecked.although(steps(1))
