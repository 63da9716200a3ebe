"""`agents completion`."""

import click

from cleveragents.cli.app import App
from cleveragents.cli.completion import SHELLS, script
from cleveragents.cli.framework import command
from cleveragents.cli.render.blocks import Code, CommandResult


@command(
    'eval "$(agents completion bash)"  # in ~/.bashrc',
    'eval "$(agents completion zsh)"  # in ~/.zshrc',
    "agents completion fish > ~/.config/fish/completions/agents.fish",
)
@click.argument("shell", metavar="SHELL", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what a shell needs to complete commands, options, plans, checkpoints and decisions."""
    app: App = ctx.obj
    text = script(shell, ctx.find_root().command)
    app.show(CommandResult(data={"shell": shell, "script": text}, blocks=[Code("", text)]))
