"""`agents config …`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.render.blocks import Cell, CommandResult, Fields, Grid
from cleveragents.config import as_text, describe_keys, find_key, set_value


@click.group("config", cls=LazyGroup)
def config() -> None:
    """Read and change the settings."""


@config.command("list", epilog=examples("agents config list"))
@click.pass_obj
def list_keys(app: App) -> None:
    """List every key with its value and where that comes from."""
    keys = describe_keys(app.settings)
    app.show(
        CommandResult(
            data={
                "config": [
                    {"key": key.name, "value": key.value, "origin": key.origin, "doc": key.doc}
                    for key in keys
                ]
            },
            blocks=[
                Grid(
                    "Settings",
                    ["key", "value", "origin"],
                    [[Cell(key.name, "accent"), key.value, key.origin] for key in keys],
                )
            ],
        )
    )


@config.command(epilog=examples("agents config get sandbox.checkpoint.auto-create-on"))
@arguments.KEY
@click.pass_obj
def get(app: App, key: str) -> None:
    """Show one value and where it comes from."""
    found = find_key(key, "`config get`")
    value, origin = found.shown(app.settings.value(key)), app.settings.origin(key)
    app.show(
        CommandResult(
            data={"key": found.name, "value": value, "origin": origin, "doc": found.doc},
            blocks=[
                Fields(
                    "Setting",
                    [
                        ("key", Cell(found.name, "accent")),
                        ("value", as_text(value)),
                        ("origin", origin),
                        ("about", found.doc),
                    ],
                )
            ],
        )
    )


@config.command(
    "set",
    epilog=examples(
        "agents config set sandbox.checkpoint.max-checkpoints-per-plan 100",
        "agents config set --project sandbox.checkpoint.auto-create-on on_tool_write,on_error",
    ),
)
@arguments.KEY
@click.argument("value", metavar="VALUE")
@click.option("--project", is_flag=True, help="For this project only.")
@click.pass_obj
def set_key(app: App, key: str, value: str, *, project: bool) -> None:
    """Set one value in the global config file, or in the project's."""
    written = set_value(
        key, value, home=app.home, cwd=app.cwd, config_path=app.config_path, project=project
    )
    app.report(
        CommandResult(
            data={"key": key, "value": find_key(key, "").shown(value), "file": written},
            messages=[f"{key} is set in {written}"],
        )
    )
