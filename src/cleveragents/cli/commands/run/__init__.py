"""`agents run`: a program in a sandbox of where one stands, without an action file."""

from typing import Any

import click

from cleveragents.cli import arguments
from cleveragents.cli.app import App
from cleveragents.cli.commands.run.program import EndWish, run_program
from cleveragents.cli.framework import AgentsCommand, examples
from cleveragents.domain.run_request import RunRequest

_SEPARATOR = "--"
_COMMAND = "command"


class ProgramCommand(AgentsCommand):
    """All that comes after `--` is somebody else's, to the letter."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, command = args, list[str]()
        if _SEPARATOR in args:
            at = args.index(_SEPARATOR)
            own, command = args[:at], args[at + 1 :]
        rest = super().parse_args(ctx, own)
        ctx.params[_COMMAND] = tuple(command)
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click calls it so
        return ["[OPTIONS]", "-- COMMAND …", "|", "TASK"]


@click.command(
    cls=ProgramCommand,
    epilog=examples(
        "agents run -- claude",
        "agents run --db app.db -- codex exec 'add a column for the tax'",
        "agents run --apply-if 'pytest -q' -- aider --message 'fix the rounding'",
        "agents config set run.agent claude && agents run 'fix the rounding'",
    ),
)
@click.argument("task", metavar="[TASK]", nargs=-1)
@click.option(
    "--db",
    "databases",
    metavar="PATH",
    type=arguments.AS_IT_IS,
    multiple=True,
    help="Take this SQLite database along; the program finds its sandbox, or in place itself, in"
    " CLEVERAGENTS_SANDBOX_DB. May be repeated (…_DB2).",
)
@click.option(
    "--resource",
    "resources",
    metavar="NAME=[TYPE:]PATH",
    type=arguments.AS_IT_IS,
    multiple=True,
    help="Take something else along; with the name `code`, instead of where you are.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="Work in your own tree, without a copy: checkpoints of it are made as it goes, and"
    " `agents undo` takes it back.",
)
@click.option(
    "--include",
    metavar="PATH",
    type=arguments.AS_IT_IS,
    multiple=True,
    help="Hold this folder in checkpoints too, though it can be made again (in place: node_modules,"
    " .venv and the like are left out); else, bring this ignored path along. May be repeated.",
)
@click.option(
    "--exclude",
    metavar="PATH",
    type=arguments.AS_IT_IS,
    multiple=True,
    help="Leave this out of checkpoints; a rollback does not touch it. May be repeated.",
)
@click.option(
    "--skip-secrets",
    is_flag=True,
    help="Leave what is called like a secret (.env, *.pem, id_rsa …) out of checkpoints, unless git"
    " tracks it; a rollback does not touch it.",
)
@click.option("--agent", metavar="NAME", help="Treat the program as this agent; none: as no agent.")
@click.option("--network", is_flag=True, help="Let the program reach the network.")
@click.option(
    "--write",
    metavar="PATH",
    type=arguments.AS_IT_IS,
    multiple=True,
    help="Let it write there too, where no rollback reaches. May be repeated.",
)
@click.option(
    "--env",
    "environment",
    metavar="NAME",
    multiple=True,
    help="Let it see this variable. May be repeated.",
)
@click.option("--timeout", type=float, metavar="SECONDS", help="End the program after so long.")
@click.option("--yes", "-y", is_flag=True, help="Apply the result without asking.")
@click.option(
    "--apply-if",
    "check",
    metavar="CMD",
    help="Run CMD in the sandbox at the end; apply if it exits with 0, else keep.",
)
@click.option(
    "--keep", is_flag=True, help="Neither ask nor apply: the result stays in the sandbox."
)
@click.pass_obj
def run(app: App, task: tuple[str, ...], check: str | None, **given: Any) -> None:
    """Run a program in a sandbox of the project you are in, with checkpoints to go back to.

    Without COMMAND, TASK is done by the agent that the setting run.agent names.
    """
    if len(task) > 1 or (task and given[_COMMAND]):
        raise click.UsageError("put `--` before the command: agents run -- COMMAND …")
    ending = EndWish(apply=given.pop("yes"), check=check, keep=given.pop("keep"))
    given["check"] = check
    if sum(map(bool, (ending.apply, ending.check, ending.keep))) > 1:
        raise click.UsageError("--yes, --apply-if and --keep exclude each other")
    if given["in_place"] and (ending.apply or ending.check or ending.keep):
        raise click.UsageError(
            "in place there is nothing to apply or to keep, as what the program does is done:"
            " leave out --yes, --apply-if and --keep"
        )
    request = RunRequest(task=task[0] if task else "", **given)
    run_program(app, request, ending)
