"""`agents status`, `apply` and `discard`: the commands of the plan, by a shorter name."""

from copy import copy

import click

from cleveragents.cli.commands.plan import changes, ending
from cleveragents.cli.commands.plan import status as standing
from cleveragents.cli.framework import examples


def _short(command: click.Command, *lines: str) -> click.Command:
    """The same command; only its examples are other ones."""
    short = copy(command)
    short.epilog = examples(*lines)
    return short


status = _short(standing.status, "agents status", "agents status hello-3 --format json")
apply = _short(
    changes.apply, "agents diff && agents apply", "agents apply --yes --branch agents/login"
)
discard = _short(ending.discard, "agents discard", "agents discard --yes hello-3")
