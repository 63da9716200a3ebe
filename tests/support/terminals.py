"""Owns the command at a terminal: it asks there, while its answer goes to a pipe."""

import fcntl
import os
import pty
import select
import subprocess
import termios
import time
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


def asked(terminal: int, until: bytes) -> bytes:
    """What was drawn up to these bytes."""
    drawn = b""
    while until not in drawn:
        drawn += os.read(terminal, 65536)
    return drawn


class Terminal:
    """A command that has a whole terminal to itself: it is typed at, resized, and seen."""

    def __init__(
        self, world: World, *argv: str, size: tuple[int, int] = (30, 100), **environ: str
    ) -> None:
        self.end, ours = pty.openpty()
        termios.tcsetwinsize(self.end, size)
        self.usual = termios.tcgetattr(self.end)
        self.seen = b""
        self._all = b""
        self.process = subprocess.Popen(
            argv,
            cwd=world.agents.cwd,
            env={**world.agents.environ, "TERM": "xterm-256color", **environ},
            stdin=ours,
            stdout=ours,
            stderr=ours,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.name = os.ttyname(ours)
        os.close(ours)

    @classmethod
    def of(cls, world: World, *words: str, **environ: str) -> "Terminal":
        """The command itself."""
        return cls(world, str(COMMAND), *words, size=(30, 100), **environ)

    def wait_for(self, text: str, seconds: float = 30) -> str:
        """What was drawn up to this text, since the last time."""
        wanted, deadline = text.encode(), time.monotonic() + seconds
        while wanted not in self.seen:
            assert time.monotonic() < deadline, f"no {text!r} in {self._all.decode()!r}"
            if not self._read(0.1) and self.process.poll() is not None and not self._read(0):
                raise AssertionError(f"it ended without {text!r}: {self._all.decode()!r}")
        before, _, self.seen = self.seen.partition(wanted)
        return (before + wanted).decode()

    def type(self, keys: str) -> None:
        os.write(self.end, keys.encode())

    def wait_until_handed_over(self, seconds: float = 30) -> None:
        """Until Ctrl-C is a key like any other: a program has the terminal then, and no shell."""
        deadline = time.monotonic() + seconds
        while termios.tcgetattr(self.end)[3] & termios.ISIG:
            assert time.monotonic() < deadline, self._all.decode()
            self._read(0.05)

    def resize(self, rows: int, columns: int) -> None:
        termios.tcsetwinsize(self.end, (rows, columns))

    def code(self, seconds: float = 60) -> int:
        """How it ended; whatever it still draws is seen first."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self._all.decode()
            self._read(0.1)
        while self._read(0):
            pass
        return self.process.returncode

    @property
    def is_as_before(self) -> bool:
        """Whether keys do again what they did."""
        return termios.tcgetattr(self.end) == self.usual

    @property
    def drawn(self) -> str:
        return self._all.decode()

    def _read(self, seconds: float) -> bool:
        if not select.select([self.end], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.end, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.seen += piece
        self._all += piece
        return bool(piece)
