"""How large the screen is, whatever the environment says about it."""

import os
from typing import Any, TextIO

from rich.console import Console, ConsoleDimensions

_SIZES = ("COLUMNS", "LINES")
_USUAL = (80, 25)
_SMALLEST = (20, 5)
_LARGEST = 1000


class Screen(Console):
    """Of a size that something can be shown on, and on which no text becomes markup.

    rich itself prints nothing into `COLUMNS=0`, stops at a `²`, and fills the memory with blanks
    where a size is absurd.
    """

    def __init__(self, stream: TextIO, *, width: int | None = None, **options: Any) -> None:
        environ = {name: value for name, value in os.environ.items() if name not in _SIZES}
        super().__init__(
            file=stream, markup=False, highlight=False, emoji=False, _environ=environ, **options
        )
        self._wanted = width

    @property
    def size(self) -> ConsoleDimensions:
        columns, lines = (
            min(max(_told(name) or real, least), _LARGEST)
            for name, real, least in zip(_SIZES, _real_size(), _SMALLEST, strict=True)
        )
        return ConsoleDimensions(self._wanted or columns, lines)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._wanted = new_size[0]

    def on_broken_pipe(self) -> None:
        """Leave it to the caller; rich would close our stdout and exit with an error."""
        raise BrokenPipeError


def _told(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _real_size() -> tuple[int, int]:
    """Of the terminal, which need not be where this goes: that may be a pipe to a pager."""
    for number in (0, 1, 2):
        try:
            columns, lines = os.get_terminal_size(number)
        except OSError:
            continue
        return columns or _USUAL[0], lines or _USUAL[1]
    return _USUAL
