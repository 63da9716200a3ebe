"""Letting a person edit a text in the editor of their choice."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import click

from cleveragents.domain.errors import DeclinedError, UsageError

_MARKS = ("<<<<<<< ours", ">>>>>>> theirs")


def edited(text: bytes, title: str) -> bytes:
    """What a person has made of it. Raises DeclinedError if the editor fails or marks are left.

    The file lies in a folder that only the user can enter, under a name of ours: whoever wrote the
    text chose the name of the real one.
    """
    command = _editor()
    with tempfile.TemporaryDirectory(prefix="cleveragents-") as folder:
        file = Path(folder, "conflict.txt")
        file.write_bytes(text)
        click.echo(f"editing {title}", err=True)
        try:
            done = subprocess.run([*command, str(file)], check=False)
        except OSError as error:
            raise UsageError(
                f"the editor {command[0]} cannot be started: {error.strerror}",
                "set EDITOR to a program that waits until the file is closed",
            ) from error
        made = file.read_bytes()
    if done.returncode != 0:
        raise DeclinedError(f"editing {title}")
    if any(line.startswith(mark.encode()) for line in made.splitlines() for mark in _MARKS):
        raise UsageError(
            f"{title} still has the marks {_MARKS[0]} or {_MARKS[1]} in it; nothing was changed",
            "edit it again, and leave only what shall be there",
        )
    return made


def _editor() -> list[str]:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        raise UsageError(
            "no editor is known", "set EDITOR, for example to `vi`, or take --ours or --theirs"
        )
    return words
