"""How tools look: all of them, or one with all that it declares."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.cli.render.blocks import Block, Cell, Code, CommandResult, Fields, Grid
from cleveragents.cli.render.yaml_text import dump
from cleveragents.cli.views.words import picked
from cleveragents.domain.action import Parameter, ToolSpec
from cleveragents.domain.footprint import EVERYTHING
from cleveragents.domain.tool_schema import example, json_schema


def listed(specs: Sequence[ToolSpec]) -> CommandResult:
    return CommandResult(
        data={
            "tools": [
                {
                    **picked(spec, "name description writes"),
                    "parameters": [
                        {"name": p.name, "type": p.type, "required": p.required}
                        for p in spec.parameters
                    ],
                }
                for spec in specs
            ]
        },
        blocks=[
            Grid(
                "Tools",
                ["tool", "writes", "arguments", "what it does"],
                [_row(spec) for spec in specs],
            )
        ],
        messages=["more about one: agents tool show NAME"],
    )


def shown(spec: ToolSpec, resources: Sequence[str]) -> CommandResult:
    step = example(spec)
    blocks: list[Block] = [Fields("Tool", _facts(spec))]
    if spec.parameters:
        blocks.append(
            Grid(
                "Parameters",
                ["name", "type", "needed", "meaning"],
                [_parameter_row(parameter) for parameter in spec.parameters],
            )
        )
    blocks.append(Code("Example", dump({"steps": [step]}, ascii_only=False).rstrip()))
    return CommandResult(
        data={
            "name": spec.name,
            "description": spec.description,
            "kind": kind_of(spec),
            "parameters": [
                picked(item, "name type required description") for item in spec.parameters
            ],
            "json_schema": json_schema(spec, resources),
            **picked(spec, "writes read_only checkpointable write_scope"),
            "reads": None if spec.reads is None else list(spec.reads),
            "side_effects": list(spec.outside_effects),
            **picked(spec, "idempotent compensate network timeout validation"),
            "example": step,
        },
        blocks=blocks,
    )


def kind_of(spec: ToolSpec) -> Mapping[str, Any] | str:
    """What carries it out."""
    if spec.command:
        return {"command": list(spec.command)}
    if spec.python is not None:
        return {"python": spec.python}
    if spec.server is not None:
        return {"server": spec.server, "tool": spec.remote}
    return "built-in"


def _facts(spec: ToolSpec) -> list[tuple[str, str | Cell]]:
    effects = "; ".join(spec.outside_effects)
    rows: list[tuple[str, str | Cell]] = [
        ("tool", Cell(spec.name, "accent")),
        ("what it does", spec.description or "-"),
        ("writes", _writes(spec)),
        ("reads", _reads(spec)),
        ("outside effects", Cell(effects, "warn") if effects else "none"),
        (
            "may run again",
            "yes" if spec.idempotent else "after an effect, only if asked to",
        ),
    ]
    if spec.compensate is not None:
        rows.append(("undone by", spec.compensate))
    if spec.network:
        rows.append(("needs", "confinement: {network: true}"))
    if spec.open_ended:
        rows.append(("arguments", "whatever it takes; it has not declared any"))
    return rows


def _writes(spec: ToolSpec) -> str | Cell:
    if not spec.writes:
        return Cell("no", "dim")
    where = ", ".join(spec.write_scope) or spec.resource or "the resource it is called on"
    return Cell(f"yes, in {where}", "warn")


def _reads(spec: ToolSpec) -> str:
    if spec.reads is None:
        return "anything, as far as is known"
    where = ["all of the resource" if entry == EVERYTHING else entry for entry in spec.reads]
    return ", ".join(where) or "nothing of the sandboxes"


def _row(spec: ToolSpec) -> list[str | Cell]:
    writes = Cell("yes", "warn") if spec.writes else Cell("no", "dim")
    arguments = ", ".join(_argument(parameter) for parameter in spec.parameters)
    return [Cell(spec.name, "accent"), writes, arguments, spec.description]


def _argument(parameter: Parameter) -> str:
    return parameter.name if parameter.required else f"[{parameter.name}]"


def _parameter_row(parameter: Parameter) -> list[str | Cell]:
    needed = "yes" if parameter.required else "no"
    return [Cell(parameter.name, "accent"), parameter.type, needed, parameter.description]
