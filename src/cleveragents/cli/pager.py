"""Long answers at a terminal go through a pager, so that their beginning does not scroll away.

The program is $AGENTS_PAGER, else $PAGER, else `less`; an empty one or `cat` means none. Whatever
becomes of it, the answer is read: if it cannot be started or fails, the answer is written as it is,
once and whole. Who quits it early has seen enough.
"""

import io
import sys
from collections.abc import Mapping
from typing import TextIO

from cleveragents.cli.render.terminal import terminal_size
from cleveragents.cli.render.text import width_of, without_colours

_VARIABLES = ("AGENTS_PAGER", "PAGER")
_NONE = ("", "cat")
_USUAL = "less"
# Quit if it is one screen after all, pass colours through, leave the text on the screen.
_LESS = {"LESS": "FRX"}


class HeldAnswer(io.StringIO):
    """An answer that is not written yet, for a terminal with this encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._encoding

    def isatty(self) -> bool:
        return True


def watched() -> bool:
    """Whether a person sits there who could turn pages."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def put(answer: str, stream: TextIO, environ: Mapping[str, str]) -> None:
    """Through the pager if it is longer than the screen; else, or if that fails, as it is."""
    if not (_is_taller(answer) and _paged(answer, stream, environ)):
        stream.write(answer)
        stream.flush()


def _is_taller(answer: str) -> bool:
    columns, lines = terminal_size()
    # The shell's own line comes below.
    return sum(_rows(line, columns) for line in answer.splitlines()) > lines - 1


def _rows(line: str, columns: int) -> int:
    return max(1, -(-width_of(without_colours(line).expandtabs()) // columns))


def _paged(answer: str, stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a pager has shown it."""
    import shlex  # noqa: PLC0415 - only long answers need these
    import signal  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    named = next((environ[name] for name in _VARIABLES if name in environ), _USUAL)
    try:
        words = shlex.split(named)
    except ValueError:  # a quote without its partner
        return False
    if not words or words[0] in _NONE:
        return False
    # Ctrl-C is for the pager. A function, as what is ignored would stay so in the pager.
    before = signal.signal(signal.SIGINT, _leave_it)
    try:
        with subprocess.Popen(words, stdin=subprocess.PIPE, env={**_LESS, **environ}) as process:
            process.communicate(answer.encode(stream.encoding, "replace"))
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    # One that a signal has ended was ended by somebody who watched it.
    return process.returncode <= 0


def _leave_it(number: int, frame: object) -> None:
    del number, frame
