"""Owns commands that draw on the whole screen: keys go in, and the last frame is read."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager

from tests.support.agents import COMMAND
from tests.support.world import World


class FullScreen:
    """A command that draws on the whole of a pseudo-terminal, driven by keys."""

    def __init__(self, world: World, *argv: str, **environ: str) -> None:
        self._terminal, self._ours = pty.openpty()
        self.settings = termios.tcgetattr(self._ours)
        self._size(80, 24)
        self.drawn = ""
        self.process = subprocess.Popen(
            [COMMAND, *argv],
            cwd=world.project.path,
            env={**world.agents.environ, "TERM": "xterm-256color", **environ},
            stdin=self._ours,
            stdout=self._ours,
            stderr=self._ours,
            start_new_session=True,
        )

    def _size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns: int, lines: int) -> None:
        """As a window does: the size, then the signal."""
        self._size(columns, lines)
        self.process.send_signal(signal.SIGWINCH)

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    @property
    def frame(self) -> list[str]:
        """The lines that were drawn last, as they are read."""
        last = self.drawn.rpartition("\x1b[H")[2]
        return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text) for text in last.split("\r\n")]

    def shows(self, text: str, seconds: float = 20) -> list[str]:
        """The frame, once this is in it."""
        deadline = time.monotonic() + seconds
        while not any(text in line for line in self.frame):
            assert time.monotonic() < deadline, f"{text!r} is not shown:\n" + "\n".join(self.frame)
            self._read(0.1)
        self._read(0)
        return self.frame

    def _read(self, seconds: float) -> bool:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return False
        data = os.read(self._terminal, 65536)
        self.drawn += data.decode(errors="replace")
        return True

    def left(self, seconds: float = 30) -> int:
        """The exit code, once all that it said is read."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.frame
            self._read(0.05)
        while self._read(0.1):
            pass
        return self.process.returncode

    @property
    def is_as_before(self) -> bool:
        """Settings, screen and cursor."""
        mine = self.drawn.rpartition("\x1b[?1049l")
        return (
            termios.tcgetattr(self._ours) == self.settings
            and bool(mine[1])
            and "\x1b[?1049h" not in mine[2]
            and self.drawn.rfind("\x1b[?25h") > self.drawn.rfind("\x1b[?25l")
        )

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)
        os.close(self._ours)


@contextmanager
def full_screen(world: World, *argv: str, **environ: str) -> Generator[FullScreen]:
    screen = FullScreen(world, *argv, **environ)
    try:
        yield screen
    finally:
        screen.close()
