"""Owns the command at a terminal: it asks there, while its answer goes to a pipe."""

import os
import pty
import subprocess
from collections.abc import Generator
from contextlib import contextmanager

from tests.support.agents import COMMAND
from tests.support.world import World


def on_a_terminal(world: World, *argv: str, **environ: str) -> tuple[int, str]:
    """Runs the command with everything on one pseudo-terminal; gives back what was drawn."""
    terminal, ours = pty.openpty()
    usual = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    process = subprocess.Popen(
        [COMMAND, *argv],
        cwd=world.project.path,
        env={**world.agents.environ, **usual, **environ},
        stdin=ours,
        stdout=ours,
        stderr=ours,
    )
    os.close(ours)
    drawn = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        drawn += piece
    os.close(terminal)
    return process.wait(60), drawn.decode()


@contextmanager
def asking(world: World, *argv: str) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """The running command, and the terminal to read the question from and to type into."""
    terminal, ours = pty.openpty()
    try:
        with subprocess.Popen(
            [COMMAND, "--format", "json", *argv],
            cwd=world.project.path,
            env=world.agents.environ,
            stdin=ours,
            stdout=subprocess.PIPE,
            stderr=ours,
        ) as process:
            os.close(ours)
            yield process, terminal
    finally:
        os.close(terminal)
