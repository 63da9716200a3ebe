"""An action as JSON text: how a plan keeps the action it was made from."""

import json
from typing import Any

from cleveragents.domain.action import (
    Action,
    ActorSpec,
    MergeStrategy,
    Parameter,
    ResourceSpec,
    RollbackPolicy,
    ServerSpec,
    Step,
    Subplan,
    Subplans,
    ToolSpec,
    Validation,
)
from cleveragents.domain.confinement import confinement_from_map, confinement_to_map
from cleveragents.domain.resource_kinds import type_named

FORMAT = 1


# Written out field by field, as every command reads an action: looking the fields up at run time
# costs more than the parsing. A test with every field set finds one that was forgotten.
def action_to_json(action: Action) -> str:
    policy = action.rollback_policy
    return json.dumps(
        {
            "format": FORMAT,
            "name": action.name,
            "description": action.description,
            "resources": [_resource_to_map(spec) for spec in action.resources],
            "steps": [_step_to_map(step) for step in action.steps],
            "tools": [_tool_to_map(spec) for spec in action.tools],
            "rollback_policy": {
                "enabled": policy.enabled,
                "require_checkpoints": policy.require_checkpoints,
                "max_checkpoints": policy.max_checkpoints,
            },
            "max_retries_per_step": action.max_retries_per_step,
            "validations": [_step_to_map(step) for step in action.validations],
            "actor": _actor_to_map(action.actor),
            "invariants": action.invariants,
            "confinement": confinement_to_map(action.confinement),
            "servers": [
                {"name": spec.name, "command": spec.command, "resource": spec.resource}
                for spec in action.servers
            ],
        },
        separators=(",", ":"),
        allow_nan=False,
    )


def action_from_json(text: str) -> Action:
    """Raises ValueError for text that `action_to_json` of this version did not write."""
    data: dict[str, Any] = json.loads(text)
    found = data.get("format")
    if found != FORMAT:
        raise ValueError(f"a stored action has format {found!r}; this version reads {FORMAT}")
    return _action_from_map(data)


def _action_from_map(data: dict[str, Any]) -> Action:
    policy = data["rollback_policy"]
    return Action(
        name=data["name"],
        description=data["description"],
        resources=tuple(_resource_from_map(item) for item in data["resources"]),
        steps=tuple(_step_from_map(item) for item in data["steps"]),
        tools=tuple(_tool_from_map(item) for item in data["tools"]),
        rollback_policy=RollbackPolicy(
            enabled=policy["enabled"],
            require_checkpoints=policy["require_checkpoints"],
            max_checkpoints=policy["max_checkpoints"],
        ),
        max_retries_per_step=data["max_retries_per_step"],
        validations=tuple(_step_from_map(item) for item in data["validations"]),
        actor=_actor_from_map(data["actor"]),
        invariants=tuple(data["invariants"]),
        confinement=confinement_from_map(data["confinement"]),
        servers=tuple(
            ServerSpec(name=item["name"], command=tuple(item["command"]), resource=item["resource"])
            for item in data["servers"]
        ),
    )


def step_to_json(step: Step) -> str:
    return json.dumps(_step_to_map(step), separators=(",", ":"), allow_nan=False)


def step_from_json(text: str) -> Step:
    return _step_from_map(json.loads(text))


def _actor_to_map(spec: ActorSpec) -> dict[str, Any]:
    return {
        "type": spec.type,
        "tools": spec.tools,
        "max_steps": spec.max_steps,
        "max_tokens": spec.max_tokens,
        "max_cost": spec.max_cost,
        "options": spec.options,
    }


def _actor_from_map(item: dict[str, Any]) -> ActorSpec:
    return ActorSpec(
        type=item["type"],
        tools=tuple(item["tools"]),
        max_steps=item["max_steps"],
        max_tokens=item["max_tokens"],
        max_cost=item["max_cost"],
        options=item["options"],
    )


def _resource_to_map(spec: ResourceSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "type": spec.type,
        "location": spec.location,
        "include": spec.include,
        "exclude": spec.exclude,
        "checkpointable": spec.checkpointable,
    }


def _resource_from_map(item: dict[str, Any]) -> ResourceSpec:
    return ResourceSpec(
        name=item["name"],
        type=type_named(item["type"]),
        location=item["location"],
        include=tuple(item["include"]),
        exclude=tuple(item["exclude"]),
        checkpointable=item["checkpointable"],
    )


def _step_to_map(step: Step) -> dict[str, Any]:
    told: dict[str, Any] = {"name": step.name, "tool": step.tool, "arguments": step.arguments}
    if step.uses:
        told["uses"] = step.uses
    if step.subplans is not None:
        told["subplans"] = _subplans_to_map(step.subplans)
    return told


def _step_from_map(item: dict[str, Any]) -> Step:
    subplans = item.get("subplans")
    return Step(
        name=item["name"],
        tool=item["tool"],
        arguments=item["arguments"],
        uses=tuple(item.get("uses", ())),
        subplans=None if subplans is None else _subplans_from_map(subplans),
    )


def _subplans_to_map(subplans: Subplans) -> dict[str, Any]:
    return {
        "parallel": subplans.parallel,
        "merge_strategy": subplans.merge_strategy.value,
        "max_parallel": subplans.max_parallel,
        "fail_fast": subplans.fail_fast,
        "max_retries": subplans.max_retries,
        "plans": [
            {
                "name": child.name,
                "description": child.description,
                "resources": child.resources,
                "depends_on": child.depends_on,
                "steps": [_step_to_map(step) for step in child.steps],
            }
            for child in subplans.plans
        ],
    }


def _subplans_from_map(item: dict[str, Any]) -> Subplans:
    return Subplans(
        parallel=item["parallel"],
        merge_strategy=MergeStrategy(item["merge_strategy"]),
        max_parallel=item["max_parallel"],
        fail_fast=item["fail_fast"],
        max_retries=item["max_retries"],
        plans=tuple(
            Subplan(
                name=child["name"],
                description=child["description"],
                resources=tuple(child["resources"]),
                depends_on=tuple(child["depends_on"]),
                steps=tuple(_step_from_map(step) for step in child["steps"]),
            )
            for child in item["plans"]
        ),
    )


def _tool_to_map(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": [
            {
                "name": parameter.name,
                "type": parameter.type,
                "required": parameter.required,
                "description": parameter.description,
            }
            for parameter in spec.parameters
        ],
        "writes": spec.writes,
        "checkpointable": spec.checkpointable,
        "write_scope": spec.write_scope,
        "reads": spec.reads,
        "side_effects": spec.side_effects,
        "idempotent": spec.idempotent,
        "compensate": spec.compensate,
        "timeout": spec.timeout,
        "command": spec.command,
        "resource": spec.resource,
        "validation": spec.validation and spec.validation.value,
        "python": spec.python,
        "server": spec.server,
        "remote": spec.remote,
        "open_ended": spec.open_ended,
        "network": spec.network,
    }


def _tool_from_map(item: dict[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=item["name"],
        description=item["description"],
        parameters=tuple(
            Parameter(
                name=parameter["name"],
                type=parameter["type"],
                required=parameter["required"],
                description=parameter["description"],
            )
            for parameter in item["parameters"]
        ),
        writes=item["writes"],
        checkpointable=item["checkpointable"],
        write_scope=tuple(item["write_scope"]),
        reads=None if item["reads"] is None else tuple(item["reads"]),
        side_effects=tuple(item["side_effects"]),
        idempotent=item["idempotent"],
        compensate=item["compensate"],
        timeout=item["timeout"],
        command=tuple(item["command"]),
        resource=item["resource"],
        validation=Validation(item["validation"]) if item["validation"] else None,
        python=item["python"],
        server=item["server"],
        remote=item["remote"],
        open_ended=item["open_ended"],
        network=item["network"],
    )
