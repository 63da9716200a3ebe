"""What an error tells people to type can be typed."""

import re
from collections.abc import Iterator

import click
import pytest
from every_error import EVERY, Sample, named

from cleveragents.cli.main import root


def commands(sample: Sample) -> Iterator[list[str]]:
    for text in re.findall(r"\bagents ([^`;,)\n]+)", sample.text):
        yield text.split()


def known_options(words: list[str]) -> set[str]:
    """Of the command that these words begin with, which must be one of ours."""
    command: click.Command = root
    for word in words:
        if not isinstance(command, click.Group):
            break
        found = command.get_command(click.Context(command), word)
        assert found is not None, f"there is no `agents {' '.join(words)}`"
        command = found
    assert not isinstance(command, click.Group), "a group alone does nothing"
    return {option for param in command.params for option in param.opts}


@pytest.mark.parametrize("sample", EVERY, ids=named)
def test_what_an_error_says_to_type_is_a_command_with_these_options(sample: Sample) -> None:
    for words in commands(sample):
        options = {word for word in words if word.startswith("--") and word != "--"}
        assert options <= known_options(words)


def test_most_errors_name_a_command() -> None:
    assert sum(1 for sample in EVERY if any(commands(sample))) > len(EVERY) / 2
