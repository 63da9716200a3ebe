"""Owns the command at a terminal: it asks there, while its answer goes to a pipe."""

import os
import pty
import subprocess
from collections.abc import Generator
from contextlib import contextmanager

from tests.support.agents import COMMAND
from tests.support.world import World


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
