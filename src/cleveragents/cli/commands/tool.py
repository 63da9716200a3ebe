"""Owns `agents tool …`."""

import click

from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.render.blocks import Cell, Grid, Outcome
from cleveragents.domain.action import Parameter, ToolSpec


@click.group("tool", cls=LazyGroup)
def tool() -> None:
    """See the tools that steps can use."""


@tool.command("list", epilog=examples("agents tool list", "agents tool list --plan <PLAN_ID>"))
@click.option("--plan", "plan_id", metavar="PLAN_ID", help="Also the own tools of this plan.")
@click.pass_obj
def list_tools(app: App, plan_id: str | None) -> None:
    """List the tools, what they take, and whether they write."""
    action = app.container.plan_queries.get(app.plan(plan_id)).action if plan_id else None
    specs = app.container.tools.specs(action)
    app.show(
        Outcome(
            data={
                "tools": [
                    {
                        "name": spec.name,
                        "description": spec.description,
                        "writes": spec.writes,
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
        )
    )


def _row(spec: ToolSpec) -> list[str | Cell]:
    writes = Cell("yes", "warn") if spec.writes else Cell("no", "dim")
    arguments = ", ".join(_argument(parameter) for parameter in spec.parameters)
    return [Cell(spec.name, "accent"), writes, arguments, spec.description]


def _argument(parameter: Parameter) -> str:
    return parameter.name if parameter.required else f"[{parameter.name}]"
