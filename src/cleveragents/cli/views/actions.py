"""How an action file looks once it is read, and its JSON Schema."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cleveragents.cli.render.blocks import Code, CommandResult, Fields, Grid

if TYPE_CHECKING:  # the service behind it is slow to import
    from cleveragents.application.services.plans.action_check import CheckedAction


def checked(file: str, found: "CheckedAction") -> CommandResult:
    action = found.action
    return CommandResult(
        data={
            "file": file,
            "name": action.name,
            "description": action.description,
            "resources": [
                {"name": spec.name, "type": spec.type, "path": spec.location}
                for spec in action.resources
            ],
            "actor": action.actor.type,
            "steps": [step.name for step in action.steps],
            "tools": [spec.name for spec in action.tools],
            "validations": [step.name for step in action.validations],
        },
        blocks=[
            Fields(
                "Action",
                [
                    ("name", action.name),
                    ("description", action.description),
                    ("actor", action.actor.type),
                ],
            ),
            Grid(
                "Resources",
                ["resource", "type", "path"],
                [[spec.name, spec.type, spec.location] for spec in action.resources],
            ),
            Grid(
                "Steps",
                ["#", "step", "tool"],
                [[str(n), step.name, step.tool] for n, step in enumerate(action.steps, 1)],
                empty=f"decided by the actor {action.actor.type}",
            ),
        ],
        messages=[f"nothing is wrong with it; next: agents plan use {file}"],
        warnings=found.notices,
    )


def schema(found: Mapping[str, Any]) -> CommandResult:
    return CommandResult(data={"schema": found}, blocks=[Code("", json.dumps(found, indent=2))])
