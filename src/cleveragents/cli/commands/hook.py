"""`agents hook …`: what a coding agent calls around each of its tool calls.

The messages are those that Claude Code gives to its hooks, and so are the exit codes: 0 goes on,
2 keeps the call from being made and tells the agent why.
"""

import os
import sys
from typing import Any, cast

import click

from cleveragents.cli.app import App
from cleveragents.cli.framework import LazyGroup, examples
from cleveragents.domain.agent_messages import hook_message
from cleveragents.domain.foreign_json import read_json

HOOKS_VARIABLE = "CLEVERAGENTS_HOOKS"
_BLOCKED, _NOTED = 2, 1


@click.group("hook", cls=LazyGroup)
def hook() -> None:
    """For coding agents: tell the plan what is about to happen.

    Called by an agent that a plan has started (actor `command`), with JSON on standard input.
    Elsewhere these commands do nothing.
    """


@hook.command("pre-tool", epilog=examples("agents hook pre-tool < call.json"))
@click.pass_obj
def pre_tool(app: App) -> None:
    """Before a tool call: wait until the decision and its checkpoint are on record."""
    _tell(app, "pre-tool")


@hook.command("post-tool", epilog=examples("agents hook post-tool < result.json"))
@click.pass_obj
def post_tool(app: App) -> None:
    """After a tool call: wait until what it did is on record."""
    _tell(app, "post-tool")


@hook.command("pause", epilog=examples("agents hook pause"))
@click.pass_obj
def pause(app: App) -> None:
    """Between two pieces of work: wait until what is there is on record."""
    folder = os.environ.get(HOOKS_VARIABLE)
    if not folder:
        _say("not started by a plan, so there is nothing to tell")
    elif refusal := app.container.tell_hook(folder, {"kind": "pause"}):
        _say(refusal)
        app.exit_code = _NOTED


def _tell(app: App, kind: str) -> None:
    folder = os.environ.get(HOOKS_VARIABLE)
    if not folder:
        _say("not started by a plan, so there is nothing to tell")
        return
    try:
        message = _message(kind, sys.stdin.buffer.read())
    except (ValueError, OSError) as error:
        _say(f"the message to the hook cannot be read: {error}")
        if kind == "pre-tool":
            app.exit_code = _BLOCKED  # nothing may happen that is not on record
            return
        message, app.exit_code = {"kind": kind, "error": f"unreadable: {error}"}, _NOTED
    refusal = app.container.tell_hook(folder, message)
    if refusal:
        _say(refusal)
        app.exit_code = _BLOCKED


def _message(kind: str, data: bytes) -> dict[str, Any]:
    told = read_json(data)
    if not isinstance(told, dict):
        raise ValueError("it is not an object")
    return hook_message(kind, cast("dict[str, Any]", told))


def _say(text: str) -> None:
    sys.stderr.write(f"agents hook: {text}\n")
