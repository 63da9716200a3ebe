"""The JSON Schema of an action file, for editors: made from the sections that read the file.

It says what JSON Schema can say: keys, types, names and the arguments of built-in tools. What one
part of a file says about another is checked by `agents action check`.
"""

from collections.abc import Sequence

from cleveragents.domain.action import ToolSpec
from cleveragents.domain.tool_schema import json_schema
from cleveragents.infrastructure.actionfile.model import JsonSchema
from cleveragents.infrastructure.actionfile.sections import ActionKeys, definitions


def action_json_schema(built_in: Sequence[ToolSpec]) -> JsonSchema:
    """`built_in` are the tools that every action has."""
    parts = definitions()
    parts["call"]["properties"]["tool"]["examples"] = [spec.name for spec in built_in]
    # The arguments of an action's own tools are not known here.
    parts["call"]["allOf"] = [
        {
            "if": {"properties": {"tool": {"const": spec.name}}, "required": ["tool"]},
            "then": _arguments(spec),
        }
        for spec in built_in
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "CleverAgents action file",
        **ActionKeys.schema(),
        "$defs": parts,
    }


def _arguments(spec: ToolSpec) -> JsonSchema:
    schema = json_schema(spec)
    needed: JsonSchema = {"required": ["with"]} if schema["required"] else {}
    return {"properties": {"with": dict(schema)}, **needed}
