"""One command that is running: what it prints, how it ends, and that it does."""

import os
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Protocol

from msgspec import Struct

from cleveragents.domain.errors import ToolLimitError, ToolNotEndedError, ToolTimeoutError
from cleveragents.infrastructure.confinement.covers import FolderMark, mark_of_folder
from cleveragents.infrastructure.processes import standstill
from cleveragents.infrastructure.processes.first_process import DONE, RESUME, SUSPEND
from cleveragents.infrastructure.processes.forking.served_process import ServedProcess
from cleveragents.infrastructure.processes.marked import end_processes
from cleveragents.infrastructure.processes.process_tree import descendants
from cleveragents.infrastructure.processes.reports import (
    END,
    GRACE_SECONDS,
    STOP,
    NotEnded,
    Report,
    read_report,
)

_CHUNK = 1 << 18
# To what it takes to end gently, and then by force, comes what a busy machine makes of it.
_PATIENCE_SECONDS = GRACE_SECONDS + 30


class Limits(Struct, frozen=True, kw_only=True):
    """`kept` is how much of the output is, `printed` how much there may be before it is ended."""

    kept: int
    printed: int
    processes: int
    seconds: float


class Tail:
    """The end of what was printed, and how much was left out before it."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._data = bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        self._data += chunk
        if len(self._data) > 2 * self._kept + _CHUNK:
            del self._data[: -self._kept]

    @property
    def text(self) -> str:
        data = self._data[-self._kept :]
        text = data.decode("utf-8", "backslashreplace")
        skipped = self.total - len(data)
        return f"[{skipped} bytes left out]\n{text}" if skipped else text


class _Ending(Struct, frozen=True, kw_only=True):
    """Found out once: nobody is to wait for it a second time."""

    how: Report | ToolNotEndedError | None


class KeptProcess(Protocol):
    """The supervisor of a command: a child of ours, or of a fork server. Each stream is
    there if it was asked for as a pipe."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def send_signal(self, sig: int, /) -> None: ...
    def wait(self) -> int:
        """Until it has ended."""
        ...

    def communicate(
        self, input: bytes | None = None, timeout: float | None = None
    ) -> tuple[bytes, bytes]:
        """Raises subprocess.TimeoutExpired."""
        ...


def told_of_changed(folders: Sequence[str]) -> str:
    """A line for the end of what a program has printed; nothing if there is nothing to tell."""
    if not folders:
        return ""
    return f"\nagents: somebody else has changed {', '.join(folders)} while this ran\n"


class Running:
    """`name` is the tool's, `mark` what its processes carry, `report` where its supervisor writes.

    `first` leads to the first process, where they have a process table of their own. `below` are
    the user's folders that it sees through layers, as they were when it began.
    """

    def __init__(
        self,
        name: str,
        mark: str,
        process: KeptProcess,
        report: int,
        first: socket.socket | None,
    ) -> None:
        self.process = process
        self._name = name
        self._mark = mark
        self._report = report
        self._first = first
        self.is_suspended = False
        self.below: Mapping[str, FolderMark | None] = {}
        self._ending: _Ending | None = None

    def changed_below(self) -> list[str]:
        """Those of the user's folders in which somebody else has changed something since."""
        return [path for path, mark in self.below.items() if mark_of_folder(path) != mark]

    @property
    def output(self) -> int:
        """Where what it prints can be read."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    @property
    def report(self) -> int:
        """Something can be read there once it and all it started have ended."""
        return self._report

    def program(self) -> int | None:
        """The process that is the program itself, as this machine numbers it."""
        found = descendants(self.process.pid)
        keepers = [self.process.pid]
        if self._first is not None:
            keepers = [number for number, place in found.items() if place.parent in keepers]
        below = [number for number, place in found.items() if place.parent in keepers]
        return min(below, default=None)

    def collect(self, limits: Limits) -> Tail:
        """What it prints until it and all it started have ended. Raises ToolError at a limit."""
        output, tail = self.output, Tail(limits.kept)
        os.set_blocking(output, False)
        waiting = select.poll()
        waiting.register(output, select.POLLIN)
        waiting.register(self._report, select.POLLIN)
        deadline = time.monotonic() + limits.seconds
        ended = False
        while not ended:
            left = deadline - time.monotonic()
            ready = [found for found, _ in waiting.poll(max(0.0, left) * 1000)]
            ended = self._report in ready
            if output in ready or ended:
                open_ = _drain(output, tail, limits.printed, whole=ended)
                if not open_ and not ended:
                    waiting.unregister(output)  # it closed its output, and goes on
            if tail.total > limits.printed:
                raise ToolLimitError(self._name, f"printed more than {limits.printed} bytes")
            if left <= 0 and not ended:
                raise ToolTimeoutError(self._name, limits.seconds)
        return tail

    def end(self, told: signal.Signals = STOP) -> Report | None:
        """See that all of it has ended; None if the supervisor could not tell how."""
        if self._ending is None:
            self._ending = self._how(END if self.is_suspended else told)
        if isinstance(self._ending.how, ToolNotEndedError):
            raise self._ending.how
        return self._ending.how

    def kill(self) -> Report | None:
        """The same, but what is running does not hear of it, and one that is suspended never moves
        again."""
        return self.end(END)

    def suspend(self) -> None:
        """Until it is resumed none of it moves; one that cannot be stopped is ended, and raises."""
        if not self._ask(SUSPEND):
            self.kill()
            raise ToolLimitError(self._name, "could not be brought to a standstill")
        self.is_suspended = True

    def resume(self) -> None:
        self._ask(RESUME)
        self.is_suspended = False

    def leave(self) -> None:
        """See that it has ended, and let go of what led to it."""
        try:
            self.end()
        finally:
            self._close()

    def _close(self) -> None:
        os.close(self._report)
        if self._first is not None:
            self._first.close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        if isinstance(self.process, ServedProcess):
            self.process.release()

    def _how(self, told: signal.Signals) -> "_Ending":
        try:
            return _Ending(how=self._ended(told))
        except ToolNotEndedError as error:
            return _Ending(how=error)

    def _ended(self, told: signal.Signals) -> Report | None:
        # A supervisor that has reported ends by itself; told to stop, others do so within a while.
        # One that does not is left at its work: without it, nobody would end what is still there.
        if not self._has_reported(0):
            self.process.send_signal(told)
            if not self._has_reported(_PATIENCE_SECONDS):
                raise ToolNotEndedError(self._name)
        said = read_report(os.read(self._report, 4096))
        if isinstance(said, NotEnded):
            raise ToolNotEndedError(self._name)
        self.process.wait()
        if isinstance(said, Report):
            return said
        # Nobody looks after them any more.
        if not end_processes(self._mark):
            raise ToolNotEndedError(self._name)
        return None

    def _has_reported(self, seconds: float) -> bool:
        waiting = select.poll()
        waiting.register(self._report, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))

    def _ask(self, wanted: bytes) -> bool:
        if self._first is None:
            below = standstill.Below(self.process.pid)
            return standstill.suspend(below) if wanted == SUSPEND else standstill.resume(below)
        try:
            self._first.settimeout(_PATIENCE_SECONDS)
            self._first.sendall(wanted)
            return self._first.recv(1) in (DONE, b"")  # or it has ended, and all have with it
        except TimeoutError:
            return False
        except OSError:
            return True


def _drain(output: int, tail: Tail, most: int, *, whole: bool) -> bool:
    """Read what is there, with `whole` all of it; whether more may come."""
    while tail.total <= most:
        try:
            chunk = os.read(output, _CHUNK)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        tail.add(chunk)
        if not whole:
            return True
    return True
