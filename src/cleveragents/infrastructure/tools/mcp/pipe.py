"""The lines that go to an MCP server and come from it, within a time and a size.

Both ways at once: a server that says more than we have read does not read what we say.
"""

import os
import select
import time

from cleveragents.domain.errors import ToolLimitError, ToolTimeoutError
from cleveragents.infrastructure.processes.running import Running

LONGEST_LINE = 64 << 20
_CHUNK = 1 << 16


class PipeClosedError(Exception):
    """Nobody is at the other end any more."""


class McpPipe:
    """`name` is what the server is called in messages, `most` the bytes it may send in answer to
    one request."""

    def __init__(self, name: str, running: Running, most: int) -> None:
        assert running.process.stdin is not None
        self._name = name
        self._most = most
        self._in = running.process.stdin.fileno()
        self._out = running.output
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._data = bytearray()
        self._looked = 0  # so much of it has no end of a line
        self._seconds = self._deadline = 0.0
        self._received = self._messages = 0

    def begin(self, seconds: float) -> None:
        """A request: its time, and what may be said in answer to it, are counted from here."""
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._received = self._messages = 0

    def send(self, line: bytes) -> None:
        """Raises PipeClosedError, ToolTimeoutError or ToolLimitError."""
        left = memoryview(line + b"\n")
        while left:
            if self._in not in self._ready(sending=True):
                self._read()
                continue
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise PipeClosedError from error

    def line(self) -> bytes:
        """The next one that is not empty. Raises as `send` does."""
        while True:
            end = self._data.find(b"\n", self._looked)
            if end < 0:
                self._looked = len(self._data)
                self._refuse_endless()
                self._ready(sending=False)
                self._read()
                continue
            line = bytes(self._data[:end])
            del self._data[: end + 1]
            self._looked = 0
            if line.strip():
                self._messages += 1
                return line

    def _ready(self, *, sending: bool) -> list[int]:
        waiting = select.poll()
        waiting.register(self._out, select.POLLIN)
        if sending:
            waiting.register(self._in, select.POLLOUT)
        left = self._deadline - time.monotonic()
        ready = [found for found, _ in waiting.poll(left * 1000)] if left > 0 else []
        if not ready:
            raise ToolTimeoutError(self._name, self._seconds, f"it had sent {self._in_words()}")
        return ready

    def _read(self) -> None:
        chunk = os.read(self._out, _CHUNK)
        if not chunk:
            raise PipeClosedError
        self._data += chunk
        self._received += len(chunk)
        if self._received > self._most:
            raise ToolLimitError(self._name, f"sent {self._in_words()}, for one call")

    def _refuse_endless(self) -> None:
        if len(self._data) > LONGEST_LINE:
            raise ToolLimitError(self._name, f"sent a message of more than {LONGEST_LINE} bytes")

    def _in_words(self) -> str:
        if not self._received:
            return "nothing"
        messages = "1 message" if self._messages == 1 else f"{self._messages} messages"
        rest = f" and {len(self._data)} bytes of one without an end" if self._data else ""
        return f"{self._received} bytes: {messages}{rest}"
