"""One conversation with a process inside: frames over its pipes, with an eye on the clock.

Nothing that it does can keep us waiting, and nothing that it says is believed without a look.
"""

import os
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from cleveragents.infrastructure.sqlite.messages import (
    HEAD,
    LONGEST,
    NonsenseError,
    Value,
    framed,
    read,
)

if TYPE_CHECKING:
    from cleveragents.infrastructure.processes.running import Running

_CHUNK = 1 << 20
_KEPT_ERRORS = 2000
_PATIENCE_SECONDS = 1.0


class SilentError(Exception):
    """It did not answer in time."""


class GoneError(Exception):
    """It has ended, or says what nobody can understand."""


class Talk:
    def __init__(self, running: "Running") -> None:
        process = running.process
        assert process.stdin is not None
        assert process.stderr is not None
        self._running = running
        self._input = process.stdin
        self._to, self._from = process.stdin.fileno(), running.output
        self._errors = process.stderr.fileno()
        for fd in (self._to, self._from, self._errors):
            os.set_blocking(fd, False)

    @property
    def is_over(self) -> bool:
        """It has ended, or says something that it was not asked for."""
        return bool(select.select([self._from, self._running.report], [], [], 0)[0])

    def ask(self, request: Value, seconds: float) -> Value:
        """Raises SilentError or GoneError, after which nothing more can be asked; and
        OverflowError if the request is too large, which was not sent then."""
        message = framed(request)
        deadline = time.monotonic() + seconds
        try:
            self._send(message, deadline)
            length = HEAD.unpack(self._read(HEAD.size, deadline))[0]
            if length > LONGEST:
                raise NonsenseError("an answer without an end")
            return read(self._read(length, deadline))
        except (OSError, NonsenseError) as error:
            raise GoneError(self._reason(error)) from error

    def close(self) -> None:
        """Without questions it ends by itself, sooner than it could be told to."""
        with suppress(OSError):
            self._input.close()
        select.select([self._running.report], [], [], _PATIENCE_SECONDS)

    def _send(self, message: bytes, deadline: float) -> None:
        rest = memoryview(message)
        while rest:
            self._wait(self._to, select.POLLOUT, deadline)
            rest = rest[os.write(self._to, rest[:_CHUNK]) :]

    def _read(self, count: int, deadline: float) -> bytes:
        found = bytearray()
        while len(found) < count:
            self._wait(self._from, select.POLLIN, deadline)
            chunk = os.read(self._from, min(count - len(found), _CHUNK))
            if not chunk:
                raise NonsenseError("")
            found += chunk
        return bytes(found)

    def _wait(self, fd: int, event: int, deadline: float) -> None:
        waiting = select.poll()
        waiting.register(fd, event)
        if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise SilentError

    def _reason(self, error: Exception) -> str:
        """How it ended, and what it has said last on its way."""
        report = self._running.end()
        try:
            said = os.read(self._errors, 1 << 16).decode("utf-8", "backslashreplace")
        except BlockingIOError:
            said = ""
        how = f"it ended with {report.code}" if report else "it was killed"
        last = said.strip().splitlines()[-1:]
        return ": ".join([how, *(line[-_KEPT_ERRORS:] for line in last), str(error)]).strip(": ")
