"""What leads to and from a program: nowhere, to our own streams, or to the user's terminal.

Each relay belongs to one run of a program. What is printed is given back too, so that it is kept.
"""

import os
import select
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Protocol

from msgspec import Struct

_CHUNK = 1 << 16


class ProgramEnds(Struct, frozen=True, kw_only=True):
    """The streams as the program gets them; `controls`: its output is a terminal of its own, which
    is to control it."""

    stdin: int
    stdout: int
    stderr: int
    controls: bool = False


class Printing(Protocol):
    """A process that was started; its outputs are there if they are pipes."""

    stdout: IO[bytes] | None
    stderr: IO[bytes] | None


class Relay(Protocol):
    """`sources` can be read from when there is something to serve, `sinks` written to."""

    @property
    def ends(self) -> ProgramEnds: ...
    @property
    def sources(self) -> Sequence[int]: ...
    @property
    def sinks(self) -> Sequence[int]: ...

    def started(self, process: Printing) -> None:
        """The program runs now."""
        ...

    def serve(self, *, whole: bool) -> bytes:
        """Pass on what is there; gives back what the program printed. With `whole`, all of it."""
        ...

    def look(self, running: "Stoppable") -> None:
        """Now and then: the program may have been stopped, and us with it."""
        ...

    def close(self) -> None:
        """The program has ended. A second call changes nothing."""
        ...


class Stoppable(Protocol):
    """A program that runs; `is_suspended`: we have stopped it ourselves."""

    is_suspended: bool

    def program(self) -> int | None:
        """Its process."""
        ...


OpenRelay = Callable[[], Relay]


class KeptOutput:
    """Nobody watches: the program finds an empty input, and what it prints is only kept."""

    ends = ProgramEnds(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def __init__(self) -> None:
        self._open: list[int] = []

    @property
    def sources(self) -> Sequence[int]:
        return self._open

    @property
    def sinks(self) -> Sequence[int]:
        return ()

    def started(self, process: Printing) -> None:
        streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
        self._open = [stream.fileno() for stream in streams]
        for number in self._open:
            os.set_blocking(number, False)

    def serve(self, *, whole: bool) -> bytes:
        printed = b""
        for number in list(self._open):
            while chunk := self._read(number):
                printed += chunk
                self._heard(number, chunk)
                if not whole:
                    break
        return printed

    def look(self, running: Stoppable) -> None:
        """There is nobody who could stop it."""

    def close(self) -> None:
        """The pipes are those of the process, which closes them."""

    def _heard(self, number: int, chunk: bytes) -> None:
        """Told each time something was printed."""

    def _read(self, number: int) -> bytes:
        """Empty if there is nothing now; one that is at its end is not asked again."""
        try:
            chunk = os.read(number, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError:  # how Linux says that nobody has the other side of a terminal any more
            chunk = b""
        if not chunk:
            self._open.remove(number)
        return chunk


class PassedThrough(KeptOutput):
    """The program reads our input itself; what it prints goes where ours would, as it comes."""

    def __init__(self, outputs: tuple[int, int]) -> None:
        super().__init__()
        self.ends = ProgramEnds(stdin=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._outputs = outputs
        self._ways: dict[int, Outlet] = {}

    def started(self, process: Printing) -> None:
        super().started(process)
        self._ways = {
            number: Outlet(output) for number, output in zip(self._open, self._outputs, strict=True)
        }

    def _heard(self, number: int, chunk: bytes) -> None:
        self._ways[number].write(chunk)


class Outlet:
    """One of our own streams. Whoever watched may have gone; the program goes on without them."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._lost = False

    def write(self, data: bytes) -> None:
        while data and not self._lost:
            try:
                data = data[os.write(self._number, data) :]
            except BlockingIOError:  # others have set it not to wait
                select.select([], [self._number], [])
            except OSError:
                self._lost = True


def closed(*numbers: int) -> None:
    for number in numbers:
        with suppress(OSError):
            os.close(number)
