"""What the arguments of a tool look like to whoever calls it: as JSON Schema, and checked."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from cleveragents.domain.action import Parameter, ToolSpec


class _ArgumentType(NamedTuple):
    """As JSON Schema has it, which values are of it, and one of them as an example."""

    schema: Mapping[str, Any]
    values: tuple[type, ...]
    sample: Any


TYPES: Mapping[str, _ArgumentType] = {
    "string": _ArgumentType({"type": "string"}, (str,), sample="text"),
    "boolean": _ArgumentType({"type": "boolean"}, (bool,), sample=True),
    "number": _ArgumentType({"type": "number"}, (int, float), sample=1.5),
    "integer": _ArgumentType({"type": "integer"}, (int,), sample=1),
    "list": _ArgumentType({"type": "array"}, (list,), sample=[]),
    "map": _ArgumentType({"type": "object"}, (dict,), sample={}),
    "list or map": _ArgumentType({"type": ["array", "object"]}, (list, dict), sample=[]),
    "any": _ArgumentType({}, (object,), sample="text"),
}


class CallProblem(Struct, frozen=True, kw_only=True):
    """What is wrong with a call: in one of its arguments, or in the call as a whole.

    `rests_on` are the sections of the action by which it was judged.
    """

    text: str
    argument: str | None = None
    rests_on: tuple[str, ...] = ()


def json_schema(spec: ToolSpec, resources: Collection[str] = ()) -> Mapping[str, Any]:
    """Of the arguments as a map. `resources` are those of the action, for whoever must choose."""
    properties = {item.name: _property(item, resources) for item in spec.parameters}
    required = [item.name for item in spec.parameters if item.required]
    if len(resources) > 1 and "resource" in properties and "resource" not in required:
        required.insert(0, "resource")
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": spec.open_ended,
    }


def fits(value: object, type_: str) -> bool:
    if isinstance(value, bool) and type_ not in ("boolean", "any"):
        return False
    return isinstance(value, TYPES[type_].values)


def example(spec: ToolSpec) -> Mapping[str, Any]:
    """A step that calls the tool with what it needs."""
    given = {item.name: TYPES[item.type].sample for item in spec.parameters if item.required}
    samples = {name: _WELL_KNOWN.get(name, value) for name, value in given.items()}
    step: dict[str, Any] = {"tool": spec.name}
    return {**step, "with": samples} if samples else step


_WELL_KNOWN: Mapping[str, Any] = {
    "path": "src/app.py",
    "to": "src/main.py",
    "pattern": "TODO|FIXME",
    "content": "print('hello')\n",
    "old": "hello",
    "new": "goodbye",
    "command": "make test",
    "message": "Say goodbye",
    "sql": "select count(*) from users",
    "url": "https://example.com/",
}


def _property(item: Parameter, resources: Collection[str]) -> Mapping[str, Any]:
    shape = dict(TYPES[item.type].schema)
    if item.name == "resource" and resources:
        shape["enum"] = list(resources)
    if item.description:
        shape["description"] = item.description
    return shape
