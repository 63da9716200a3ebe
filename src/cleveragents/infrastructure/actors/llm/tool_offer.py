"""The tools of a plan as a model sees them, and what its calls mean as steps."""

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from cleveragents.domain.action import (
    SUBPLANS,
    Action,
    Step,
    Subplan,
    Subplans,
    ToolSpec,
)
from cleveragents.domain.actor_protocol import AGENT_TOOL
from cleveragents.domain.foreign_json import read_json
from cleveragents.domain.subplan import MOST_LEVELS
from cleveragents.domain.tool_schema import json_schema

SPAWN = "spawn_subplans"
_CHILD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SPAWN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "parallel": {"type": "boolean", "description": "run them side by side"},
        "plans": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "name": {
                        "type": "string",
                        "description": "a letter, then letters, digits, _ -",
                    },
                    "description": {"type": "string", "description": "its whole task, in words"},
                },
                "required": ["name", "description"],
            },
        },
    },
    "required": ["plans"],
}


class UnusableCallError(Exception):
    """A call that means nothing; the text is for the model."""


class Offer:
    """The tools that the actor of an action may use, under names that every provider accepts."""

    def __init__(self, action: Action, specs: Sequence[ToolSpec]) -> None:
        self._action = action
        allowed = [spec for spec in specs if _is_offered(action, spec)]
        self._names = {_safe(spec.name): spec.name for spec in allowed}
        self._all = {_safe(spec.name): spec.name for spec in specs}
        self.definitions = [_definition(action, spec) for spec in allowed]
        # A child's name has its parent's before it, for each level one.
        if action.name.count("/") < MOST_LEVELS and _matches(action, SPAWN):
            self.definitions.append(_SPAWNING)

    def step(self, call: ToolCallPart) -> Step:
        """Raises UnusableCallError if there is no way to read the call."""
        arguments = _arguments(call)
        if call.tool_name == SPAWN and _SPAWNING in self.definitions:
            return _spawning(self._action, arguments)
        tool = self._tool(call.tool_name)
        return Step(name=_title(tool, arguments), tool=tool, arguments=arguments)

    def _tool(self, name: str) -> str:
        if name.startswith(AGENT_TOOL):
            raise UnusableCallError(f"there is no tool {name}")  # those are what programs do
        safe = _safe(name)
        if safe in self._names:
            return self._names[safe]
        # On record under a name that no tool has, so that it cannot run.
        return f"{self._all[safe]} (not offered)" if safe in self._all else name


_SPAWNING = ToolDefinition(
    name=SPAWN,
    description="Split work off: each child plan does its task on a copy of the sandboxes, and its "
    "result is merged. Children know nothing but their own description.",
    parameters_json_schema=_SPAWN_SCHEMA,
)


def _is_offered(action: Action, spec: ToolSpec) -> bool:
    if spec.validation is not None or any(t.compensate == spec.name for t in action.tools):
        return False  # they run by themselves
    return _matches(action, spec.name)


def _matches(action: Action, name: str) -> bool:
    patterns = action.actor.tools
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def name_to_send(name: str) -> str:
    """Of a call that was made: providers refuse a request with any other name in it."""
    return _safe(name)[:64] or "unnamed"


def _definition(action: Action, spec: ToolSpec) -> ToolDefinition:
    description = spec.description or f"Runs {' '.join(spec.command)}"
    if spec.outside_effects:
        description += f". Cannot be undone: {', '.join(spec.outside_effects)}"
    schema = json_schema(spec, [resource.name for resource in action.resources])
    return ToolDefinition(
        name=_safe(spec.name), description=description, parameters_json_schema=dict(schema)
    )


def _arguments(call: ToolCallPart) -> Mapping[str, Any]:
    try:
        arguments = call.args_as_dict(raise_if_invalid=True)
        # The library takes numbers that JSON does not have, and any depth.
        read_json(json.dumps(arguments).encode("ascii"))
    except (ValueError, AssertionError, RecursionError) as error:
        text = (
            f"the arguments of {call.tool_name} are not a JSON object: {call.args!r:.200} ({error})"
        )
        raise UnusableCallError(text) from error
    return arguments


def _title(tool: str, arguments: Mapping[str, Any]) -> str:
    """A line for people: the tool, and what it is about."""
    subject = next((arguments[k] for k in ("path", "command", "sql") if k in arguments), None)
    if subject is None and arguments:
        subject = json.dumps(arguments)
    line = " ".join(f"{tool} {'' if subject is None else subject}".split())
    return "".join(c if c.isprintable() else "?" for c in line)[:120]


def _spawning(action: Action, arguments: Mapping[str, Any]) -> Step:
    plans = arguments.get("plans")
    items = cast("list[object]", plans) if isinstance(plans, list) else []
    children = tuple(_child(action, item) for item in items)
    names = [child.name for child in children]
    if not children or len(set(names)) < len(names):
        raise UnusableCallError("give at least one child plan, each with a name of its own")
    return Step(
        name=", ".join(names)[:200],
        tool=SUBPLANS,
        subplans=Subplans(plans=children, parallel=arguments.get("parallel") is True),
    )


def _child(action: Action, item: object) -> Subplan:
    fields = cast("dict[str, object]", item) if isinstance(item, dict) else {}
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not _CHILD_NAME.fullmatch(name):
        raise UnusableCallError("a child's name is a letter, then letters, digits, `_` or `-`")
    if not isinstance(description, str) or not description.strip():
        raise UnusableCallError(f"say in `description` what child {name} is to do")
    return Subplan(
        name=name,
        description=description,
        resources=tuple(spec.name for spec in action.resources),
        steps=(),
    )
