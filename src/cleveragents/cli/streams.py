"""The standard streams: an answer that cannot be written is noticed, a message stops nothing.

`take` puts our own in the place of Python's. Whatever writes to them then, rich, click or we
ourselves, meets the same rules: a stream that the caller has closed leads nowhere; one that is
full or whose reader has gone leads nowhere from then on, so that the interpreter does not fail over
it at its end; one that others have set not to wait is waited for.
"""

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputLostError(Exception):
    """Not an OSError: that the answer cannot be written says nothing about what was done."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.reason = error.strerror or str(error)
        # Whoever read our output has seen enough; that is nobody's failure.
        self.reader_left = isinstance(error, BrokenPipeError)


def take() -> None:
    """Once, before anything is read or written; nothing may take the numbers of closed ones."""
    for number in (0, 1, 2):
        if not _is_open(number):
            # The lowest free number is this one. What we start gets it too, as if it were open.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - positional
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - until we end
    sys.stdout = _like(sys.stdout, _AnswerStream(1, "w", closefd=False))
    sys.stderr = _like(sys.stderr, _Messages(2, "w", closefd=False))


class _Patient(io.FileIO):
    """Waits where a stream that was set not to wait is full for a moment."""

    def write(self, b: "ReadableBuffer", /) -> int:
        written: int | None = None
        while (written := super().write(b)) is None:
            _until_there_is_room(self.fileno())
        return written


class _AnswerStream(_Patient):
    def write(self, b: "ReadableBuffer", /) -> int:
        try:
            return super().write(b)
        except OSError as error:
            _lead_nowhere(self.fileno())
            raise OutputLostError(error) from error


class _Messages(_Patient):
    def write(self, b: "ReadableBuffer", /) -> int:
        try:
            return super().write(b)
        except OSError:
            _lead_nowhere(self.fileno())
            return memoryview(b).nbytes


def _like(stream: TextIO | None, raw: io.FileIO) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding if stream is not None else "utf-8",
        errors=stream.errors if stream is not None else "backslashreplace",
        newline="\n",
        # What is said on stderr is said at once; an answer is flushed when it is complete.
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _until_there_is_room(number: int) -> None:
    import select  # noqa: PLC0415 - hardly ever needed, and `--help` must not pay for it

    select.select([], [number], [])
