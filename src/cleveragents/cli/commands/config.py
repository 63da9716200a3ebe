"""`agents config …`."""

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.cli.render.blocks import Cell, CommandResult, Fields, Grid
from cleveragents.config import (
    ConfigProblem,
    Value,
    as_text,
    describe_keys,
    find_key,
    way_out,
)
from cleveragents.config.editing import set_value, unset_value

_PROJECT = click.option("--project", is_flag=True, help="For this project only.")


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
                    cut=("value", "origin"),
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
@_PROJECT
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
            warnings=_stronger(app, key, written),
        )
    )


@config.command(
    epilog=examples("agents config unset tool.timeout", "agents config unset --project format")
)
@arguments.KEY
@_PROJECT
@click.pass_obj
def unset(app: App, key: str, *, project: bool) -> None:
    """Take one value out of the global config file, or out of the project's."""
    done = unset_value(
        key, home=app.home, cwd=app.cwd, config_path=app.config_path, project=project
    )
    now = _now(app, key)
    told = f"{key} is no longer set in {done.file}"
    if not done.removed:
        told = f"{key} was not set in {done.file}; nothing is changed"
    left = [f"it is {as_text(now['value'])} now, from: {now['origin']}"] if now else []
    app.report(
        CommandResult(
            data={"key": key, "file": done.file, "removed": done.removed, **now},
            messages=[told, *left],
        )
    )


def _now(app: App, key: str) -> dict[str, Value]:
    """What holds from here on; nothing if other mistakes keep that from being known."""
    try:
        found = find_key(key, "")
        return {"value": found.shown(app.settings.value(key)), "origin": app.settings.origin(key)}
    except ConfigProblem:
        return {}


def _stronger(app: App, key: str, written: str) -> list[str]:
    """That the value has no effect here, if something else comes before the file."""
    try:
        origin = app.settings.origin(key)
    except ConfigProblem:
        return []
    hint = way_out(origin, key)
    if hint is None or origin.endswith(written):
        return []
    return [f"this has no effect here: {key} comes from {origin}; {hint}"]
