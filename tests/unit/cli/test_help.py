"""The help of every command explains its arguments and has examples that work."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from cleveragents.cli.framework import ARGUMENTS, argument_name
from cleveragents.cli.main import root

SHELL_WORDS = {">", "<", "&&", "#"}


def leaves(
    command: click.Command = root, path: str = "agents", parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from leaves(inner, f"{path} {name}", context)


LEAVES = dict(leaves())


def examples(command: click.Command) -> list[str]:
    return [line.strip() for line in (command.epilog or "").splitlines() if "agents " in line]


def called(line: str) -> Iterator[list[str]]:
    """The command lines of ours in one line of shell; what the shell itself reads is left out."""
    inner = re.search(r"\$\(agents (.*?)\)", line)
    words: list[str] = []
    for word in shlex.split(f"agents {inner[1]}" if inner else re.sub(r"<(\w+)>", r"\1", line)):
        if word in SHELL_WORDS:
            yield words
            words = []
        else:
            words.append(word)
    yield words


def parsed(words: list[str]) -> click.Context:
    """Raises what a person would see who types this."""
    context = root.make_context("agents", words, obj=object())
    while isinstance(context.command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, command, left = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, left, parent=context)
    return context


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_has_examples_and_they_can_be_typed(path: str) -> None:
    shown = examples(LEAVES[path])
    ours = [words for line in shown for words in called(line) if words[:1] == ["agents"]]
    assert any(" ".join(words).replace("-v ", "").startswith(path) for words in ours), shown
    for words in ours:
        parsed(words[1:])


@pytest.mark.parametrize("path", LEAVES)
def test_every_argument_is_explained(path: str) -> None:
    command = LEAVES[path]
    given = [p for p in command.params if isinstance(p, click.Argument)]
    text = command.get_help(click.Context(command, info_name=path))
    for name in map(argument_name, given):
        assert f"  {name}  " in text
        assert ARGUMENTS[name].partition(" ")[0] in text


def test_every_option_says_what_it_does() -> None:
    silent = [
        f"{path} {option.opts[0]}"
        for path, command in LEAVES.items()
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]
    assert silent == []


def test_every_explanation_is_of_an_argument() -> None:
    names = {
        argument_name(param)
        for command in LEAVES.values()
        for param in command.params
        if isinstance(param, click.Argument)
    }
    assert set(ARGUMENTS) == names
