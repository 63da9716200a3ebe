"""The JSON Schema of an action file, for editors: made from the shapes that read the file.

It says what JSON Schema can say: keys, types, names and the arguments of built-in tools. What one
part of a file says about another is checked by `agents action check`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.domain.action import SCRIPTED, ResourceType, ToolSpec
from cleveragents.domain.confinement import ConfinementMode
from cleveragents.domain.tool_schema import json_schema
from cleveragents.infrastructure.actionfile.actors import SHAPES
from cleveragents.infrastructure.actionfile.key_docs import KEYS
from cleveragents.infrastructure.actionfile.rules import POSTGRES_URL, RESOURCE_NAME, TOOL_NAME
from cleveragents.infrastructure.actionfile.shapes import (
    ActionShape,
    ConfinementShape,
    PolicyShape,
    ResourceShape,
    ServerShape,
    Shape,
    StepShape,
    ToolShape,
)
from cleveragents.infrastructure.actionfile.subplans import (
    CHILD_NAME,
    SpawnShape,
    SubplanShape,
    SubplansShape,
)

Schema = dict[str, Any]


def action_json_schema(built_in: Sequence[ToolSpec]) -> Schema:
    """`built_in` are the tools that every action has."""
    top = _shape(ActionShape, "action")
    top["properties"] |= {
        "resources": _named("resource", RESOURCE_NAME.pattern, "action.resources") | _NOT_EMPTY,
        "rollback_policy": _one("policy", "action.rollback_policy"),
        "tools": _named("tool", TOOL_NAME.pattern, "action.tools"),
        "mcp_servers": _named("server", ".", "action.mcp_servers"),
        "actor": _one("actor", "action.actor"),
        "confinement": _one("confinement", "action.confinement"),
        "steps": _list("step", "action.steps") | {"minItems": 1},
        "validations": _list("step", "action.validations"),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "CleverAgents action file",
        **top,
        "anyOf": [{"required": ["steps"]}, {"required": ["actor"]}],
        "$defs": {
            "resource": _resource(),
            "policy": _shape(PolicyShape, "policy"),
            "tool": _tool(),
            "server": _shape(ServerShape, "server"),
            "actor": _actor(),
            "confinement": _confinement(),
            "step": {"if": {"required": ["subplans"]}, "then": _ref("spawn"), "else": _ref("call")},
            "call": _call(built_in),
            "spawn": _spawn(),
            "subplan": _subplan(),
        },
    }


_NOT_EMPTY: Schema = {"minProperties": 1}


def _resource() -> Schema:
    shape = _shape(ResourceShape, "resource")
    postgres = {"properties": {"type": {"const": ResourceType.POSTGRES.value}}}
    folder = [ResourceType.GIT_CHECKOUT.value, ResourceType.FS_DIRECTORY.value]
    url = {"properties": {"url": {"pattern": f"^{POSTGRES_URL.pattern}"}}}
    return shape | {
        "if": postgres,
        "then": {"required": ["url"], "not": {"required": ["path"]}, **url},
        "else": {"required": ["path"], "not": {"required": ["url"]}},
        "allOf": [
            {
                "if": {"required": [key]},
                "then": {"properties": {"type": {"enum": folder}}},
            }
            for key in ("include", "exclude")
        ],
    }


def _tool() -> Schema:
    kinds = [{"required": [key]} for key in ("command", "python", "server")]
    return _shape(ToolShape, "tool") | {
        "oneOf": kinds,
        "dependentRequired": {"server": ["tool"], "tool": ["server"]},
    }


def _actor() -> Schema:
    """By name alone where that says everything, or with the keys that this one has."""
    written_down = {
        "type": "object",
        "properties": {"type": {"const": SCRIPTED}},
        "required": ["type"],
        "additionalProperties": False,
    }
    kinds = [{"const": SCRIPTED}, written_down]
    for name, shape in SHAPES.items():
        kind = _shape(shape, "actor")
        kind["properties"]["type"] = {"const": name, "description": KEYS["actor.type"]}
        kinds.append(kind)
    return {"anyOf": kinds}


def _confinement() -> Schema:
    # An editor that reads YAML 1.1 takes `off` for false.
    modes = [False, *(mode.value for mode in ConfinementMode)]
    return {"anyOf": [{"enum": modes}, _shape(ConfinementShape, "confinement")]}


def _call(built_in: Sequence[ToolSpec]) -> Schema:
    """A step that calls a tool; the arguments of own tools are not known here."""
    shape = _shape(StepShape, "step")
    shape["properties"]["tool"] |= {"examples": [spec.name for spec in built_in]}
    return shape | {
        "allOf": [
            {
                "if": {"properties": {"tool": {"const": spec.name}}, "required": ["tool"]},
                "then": _arguments(spec),
            }
            for spec in built_in
        ]
    }


def _arguments(spec: ToolSpec) -> Schema:
    schema = json_schema(spec)
    needed: Schema = {"required": ["with"]} if schema["required"] else {}
    return {"properties": {"with": dict(schema)}, **needed}


def _spawn() -> Schema:
    shape, inner = _shape(SpawnShape, "step"), _shape(SubplansShape, "subplans")
    inner["properties"]["plans"] = _list("subplan", "subplans.plans") | {"minItems": 1}
    shape["properties"]["subplans"] = inner | {"description": KEYS["step.subplans"]}
    return shape


def _subplan() -> Schema:
    shape = _shape(SubplanShape, "subplan")
    shape["properties"]["name"] |= {"pattern": f"^{CHILD_NAME.pattern}$"}
    shape["properties"]["steps"] = _list("step", "subplan.steps") | {"minItems": 1}
    return shape


def _shape(shape: type[Shape], section: str) -> Schema:
    """What pydantic says of a shape, with a sentence for each of its keys."""
    schema = shape.model_json_schema(by_alias=True)
    properties = {
        key: _tidy(value) | {"description": KEYS[f"{section}.{key}"]}
        for key, value in schema["properties"].items()
    }
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    for keyword in ("required", "$defs"):
        if keyword in schema:
            found[keyword] = schema[keyword]
    return _inlined(found)


def _inlined(schema: Schema) -> Schema:
    """The one shape that is inside another, in its place."""
    inner = schema.pop("$defs", {})

    def replaced(value: Any) -> Any:
        if isinstance(value, list):
            return [replaced(item) for item in value]  # pyright: ignore[reportUnknownVariableType] - of JSON
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return _tidy(inner[str(value["$ref"]).rpartition("/")[2]])  # pyright: ignore[reportUnknownArgumentType] - of JSON
        return {key: replaced(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] - of JSON

    return replaced(schema)


def _tidy(schema: Mapping[str, Any]) -> Schema:
    """Without pydantic's titles, defaults that say nothing, and null for what may be left out."""
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(kinds) == 1:
        schema = {key: value for key, value in schema.items() if key != "anyOf"} | kinds[0]
    elif kinds:
        schema = {**schema, "anyOf": kinds}
    properties = {key: _tidy(value) for key, value in schema.get("properties", {}).items()}
    rest = {
        key: value
        for key, value in schema.items()
        if key != "title" and not (key == "default" and value in (None, {}, [], ""))
    }
    return rest | ({"properties": properties} if properties else {})


def _named(target: str, pattern: str, key: str) -> Schema:
    return {
        "type": "object",
        "propertyNames": {"pattern": f"^{pattern}$" if pattern != "." else "."},
        "additionalProperties": _ref(target),
        "description": KEYS[key],
    }


def _list(target: str, key: str) -> Schema:
    return {"type": "array", "items": _ref(target), "description": KEYS[key]}


def _one(target: str, key: str) -> Schema:
    return {**_ref(target), "description": KEYS[key]}


def _ref(target: str) -> Schema:
    return {"$ref": f"#/$defs/{target}"}
