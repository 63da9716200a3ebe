"""One line for work that takes longer than a person waits without a word.

On a terminal it moves, and is gone once the work is over; in a pipe it is a line after some seconds
and then one from time to time. What is over before that leaves nothing.
"""

import threading
import time
from contextlib import suppress
from itertools import cycle
from typing import TextIO

from cleveragents.cli.render.terminal import terminal_size
from cleveragents.cli.render.text import one_line, write
from cleveragents.domain.events import Working

_AT_ONCE, _SPARSE, _AGAIN = 1.0, 3.0, 10.0  # seconds
_FRAME_SECONDS = 0.1
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ERASE = "\r\x1b[K"


class Waiting:
    """A thread writes, so that it also moves while the work itself cannot say anything."""

    def __init__(self, stderr: TextIO, *, moving: bool) -> None:
        self._stderr = stderr
        self._moving = moving
        self._what = ""
        self._over = threading.Event()
        self._writer: threading.Thread | None = None

    def at(self, event: Working) -> None:
        self._what = sentence(event)
        if self._writer is None:
            self._over.clear()
            self._writer = threading.Thread(target=self._write, daemon=True)
            self._writer.start()

    def stop(self) -> None:
        """Nothing more is written until there is something to wait for again."""
        if self._writer is not None:
            self._over.set()
            self._writer.join()
            self._writer = None

    def _write(self) -> None:
        began = time.monotonic()
        if self._over.wait(_AT_ONCE if self._moving else _SPARSE):
            return
        # Whoever watched may have gone; the work goes on without them.
        with suppress(OSError, ValueError):
            (self._move if self._moving else self._tell)(began)

    def _move(self, began: float) -> None:
        for frame in cycle(_FRAMES):
            line = f"{frame} {self._what} … {time.monotonic() - began:.0f} s"
            write(self._stderr, f"\r{line[: terminal_size()[0] - 1]}\x1b[K")
            if self._over.wait(_FRAME_SECONDS):
                break
        write(self._stderr, _ERASE)

    def _tell(self, began: float) -> None:
        while True:
            write(self._stderr, f"working: {self._what}, {time.monotonic() - began:.0f} s\n")
            if self._over.wait(_AGAIN):
                return


def sentence(event: Working) -> str:
    part = f" ({event.part} of {event.parts})" if event.parts > 1 else ""
    return one_line(f"{event.what}{part}")
