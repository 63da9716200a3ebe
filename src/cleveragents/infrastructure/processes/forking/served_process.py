"""The supervisor of a command that a fork server has started, as we talk to it and wait for it.

It is no child of ours, and we know it by a descriptor: a number may belong to somebody else by the
time it is used.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

_CHUNK = 1 << 18
_PIECE = 1 << 12  # what a pipe takes without waiting, if it takes anything


class ServedProcess:
    """One that a fork server has started; `handle` is a descriptor of the process."""

    def __init__(self, pid: int, handle: int, streams: Mapping[int, IO[bytes]]) -> None:
        self.pid = pid
        self.stdin = streams.get(0)
        self.stdout = streams.get(1)
        self.stderr = streams.get(2)
        self._handle = handle

    def send_signal(self, sig: int, /) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, sig)

    def wait(self) -> int:
        """How it ended only the server knows; what it had to say is in its report."""
        ended = select.poll()
        ended.register(self._handle, select.POLLIN)
        ended.poll()
        return 0

    def communicate(
        self, input: bytes | None = None, timeout: float | None = None
    ) -> tuple[bytes, bytes]:
        deadline = None if timeout is None else time.monotonic() + timeout
        talk = _Talk(self, input or b"")
        while talk.is_open:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired("", timeout or 0)
            talk.go_on(left)
        self.wait()
        return talk.heard(self.stdout), talk.heard(self.stderr)

    def release(self) -> None:
        os.close(self._handle)


class _Talk:
    """All of the input written, and all of both outputs read, whichever is ready first."""

    def __init__(self, process: ServedProcess, text: bytes) -> None:
        self._stdin = process.stdin
        self._left = memoryview(text)
        outputs = [stream for stream in (process.stdout, process.stderr) if stream is not None]
        self._heard = {stream.fileno(): bytearray() for stream in outputs}
        self._open = set(self._heard)
        self._ready = select.poll()
        for number in self._open:
            self._ready.register(number, select.POLLIN)
        if self._stdin is not None:
            self._ready.register(self._stdin.fileno(), select.POLLOUT)

    @property
    def is_open(self) -> bool:
        return bool(self._open) or self._stdin is not None

    def go_on(self, seconds: float | None) -> None:
        for number, _ in self._ready.poll(None if seconds is None else seconds * 1000):
            self._read(number) if number in self._open else self._write()

    def heard(self, stream: IO[bytes] | None) -> bytes:
        return b"" if stream is None else bytes(self._heard[stream.fileno()])

    def _read(self, number: int) -> None:
        chunk = os.read(number, _CHUNK)
        self._heard[number] += chunk
        if not chunk:
            self._ready.unregister(number)
            self._open.discard(number)

    def _write(self) -> None:
        assert self._stdin is not None
        try:
            self._left = self._left[os.write(self._stdin.fileno(), self._left[:_PIECE]) :]
        except BrokenPipeError:  # it wants no more
            self._left = self._left[:0]
        if not self._left:
            self._ready.unregister(self._stdin.fileno())
            self._stdin.close()
            self._stdin = None
