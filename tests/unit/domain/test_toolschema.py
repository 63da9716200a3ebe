"""The arguments of a tool as JSON Schema, as values that fit, and as an example."""

import pytest

from cleveragents.domain.action import Parameter, ToolSpec
from cleveragents.domain.tool_schema import TYPES, example, fits, json_schema

SPEC = ToolSpec(
    name="t",
    parameters=(
        Parameter(name="resource", required=False, description="where"),
        Parameter(name="path"),
        Parameter(name="odd", type="list or map", required=False),
        Parameter(name="many", type="integer"),
    ),
)


def test_the_schema_says_what_is_needed_and_takes_nothing_else() -> None:
    assert json_schema(SPEC) == {
        "type": "object",
        "properties": {
            "resource": {"type": "string", "description": "where"},
            "path": {"type": "string"},
            "odd": {"type": ["array", "object"]},
            "many": {"type": "integer"},
        },
        "required": ["path", "many"],
        "additionalProperties": False,
    }


def test_who_has_several_resources_must_choose_one_of_them() -> None:
    several = json_schema(SPEC, ["code", "db"])
    assert several["properties"]["resource"]["enum"] == ["code", "db"]
    assert several["required"] == ["resource", "path", "many"]
    assert json_schema(SPEC, ["code"])["required"] == ["path", "many"]
    already = ToolSpec(name="t", parameters=(Parameter(name="path"), Parameter(name="resource")))
    assert json_schema(already, ["code", "db"])["required"] == ["path", "resource"]


def test_an_open_ended_tool_takes_anything() -> None:
    assert json_schema(ToolSpec(name="o", open_ended=True))["additionalProperties"] is True


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        ("a", "string", True),
        (1, "string", False),
        (True, "boolean", True),
        (True, "number", False),
        (True, "integer", False),
        (1.5, "number", True),
        (1.5, "integer", False),
        ([], "list", True),
        ({}, "list", False),
        ({}, "list or map", True),
        (None, "any", True),
        (True, "any", True),
    ],
)
def test_values_fit_or_do_not(value: object, type_: str, expected: object) -> None:
    assert fits(value, type_) is expected


def test_examples_have_what_is_needed() -> None:
    assert example(SPEC) == {"tool": "t", "with": {"path": "src/app.py", "many": 1}}
    assert example(ToolSpec(name="bare")) == {"tool": "bare"}
    every = ToolSpec(name="e", parameters=tuple(Parameter(name=t, type=t) for t in TYPES))
    given = example(every)["with"]
    assert all(fits(given[name], name) for name in TYPES)
