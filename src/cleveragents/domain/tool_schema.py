"""What the arguments of a tool look like to whoever calls it: as JSON Schema, and checked."""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from cleveragents.domain.action import Parameter, ToolSpec

TYPES: Mapping[str, Mapping[str, Any]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "list": {"type": "array"},
    "map": {"type": "object"},
    "list or map": {"type": ["array", "object"]},
    "any": {},
}
_VALUES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "integer": (int,),
    "list": (list,),
    "map": (dict,),
    "list or map": (list, dict),
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
    if type_ == "any":
        return True
    if isinstance(value, bool) and type_ != "boolean":
        return False
    return isinstance(value, _VALUES[type_])


def example(spec: ToolSpec) -> Mapping[str, Any]:
    """A step that calls the tool with what it needs."""
    given = {item.name: _SAMPLES[item.type] for item in spec.parameters if item.required}
    samples = {name: _WELL_KNOWN.get(name, value) for name, value in given.items()}
    step: dict[str, Any] = {"tool": spec.name}
    return {**step, "with": samples} if samples else step


_SAMPLES: Mapping[str, Any] = {
    "string": "text",
    "boolean": True,
    "number": 1.5,
    "integer": 1,
    "list": [],
    "map": {},
    "list or map": [],
    "any": "text",
}
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
    shape = dict(TYPES[item.type])
    if item.name == "resource" and resources:
        shape["enum"] = list(resources)
    if item.description:
        shape["description"] = item.description
    return shape
