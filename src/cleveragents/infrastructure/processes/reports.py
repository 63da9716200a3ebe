"""What those who keep watch over a command are told, and what they tell of it."""

import os
import signal

from msgspec import Struct

from cleveragents.domain.scarcity import scarcity_of

GRACE_SECONDS = 2.0
STOP = signal.SIGTERM  # gently at first
END = signal.SIGHUP  # at once, without a word to anybody; also if we have died

_NOT_HELD, _NOT_RUN, _NOT_ENDED = "!", "?", "~"


class Report(Struct, frozen=True, kw_only=True):
    """How it ended. `code` is negative for a signal; `left` were still running and were ended."""

    code: int
    left: int = 0
    too_many: bool = False

    def as_bytes(self) -> bytes:
        return f"{self.code} {self.left} {int(self.too_many)}\n".encode()


class NotHeld(Struct, frozen=True, kw_only=True):
    """It did not become its program, because it could not be held inside."""

    reason: str

    def as_bytes(self) -> bytes:
        return f"{_NOT_HELD}{self.reason}\n".encode()


class NotRun(Struct, frozen=True, kw_only=True):
    """It could have, but there is no such program, or it is none."""

    errno: int

    @property
    def reason(self) -> str:
        return os.strerror(self.errno)

    def as_bytes(self) -> bytes:
        return f"{_NOT_RUN}{self.errno}\n".encode()


def not_inside(error: OSError) -> NotHeld | NotRun:
    """Why it did not come to be held inside: what there is no more of is no fault of the means."""
    if scarcity_of(error) is not None:
        return NotRun(errno=error.errno or 0)
    return NotHeld(reason=error.strerror or str(error))


class NotEnded(Struct, frozen=True, kw_only=True):
    """Something of it is still there, and may write; whoever keeps watch goes on ending it."""

    def as_bytes(self) -> bytes:
        return f"{_NOT_ENDED}\n".encode()


Said = Report | NotHeld | NotRun | NotEnded


def read_report(data: bytes) -> Said | None:
    """What was told first; None: whoever had to tell it was killed."""
    line, whole, _ = data.decode("utf-8", "replace").partition("\n")
    if not whole:
        return None
    if line.startswith(_NOT_HELD):
        return NotHeld(reason=line[1:])
    if line.startswith(_NOT_RUN):
        return NotRun(errno=int(line[1:]))
    if line == _NOT_ENDED:
        return NotEnded()
    code, left, too_many = line.split()
    return Report(code=int(code), left=int(left), too_many=too_many == "1")
