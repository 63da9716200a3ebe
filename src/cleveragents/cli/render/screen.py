"""A rich console that keeps to our terminal's size, and takes no text for markup."""

import os
from typing import Any, TextIO

from rich.console import Console, ConsoleDimensions

from cleveragents.cli.render.terminal import terminal_size

_SIZES = ("COLUMNS", "LINES")


class Screen(Console):
    """Of a size that something can be shown on, and on which no text becomes markup.

    rich itself prints nothing into `COLUMNS=0`, stops at a `²`, and fills the memory with blanks
    where a size is absurd. Where colours are forbidden, nothing can force them.
    """

    def __init__(
        self, stream: TextIO, *, width: int | None = None, no_color: bool = False, **options: Any
    ) -> None:
        left_out = (*_SIZES, "FORCE_COLOR") if no_color else _SIZES
        environ = {name: value for name, value in os.environ.items() if name not in left_out}
        super().__init__(
            file=stream,
            markup=False,
            highlight=False,
            emoji=False,
            no_color=no_color,
            _environ=environ,
            **options,
        )
        self._wanted = width

    @property
    def size(self) -> ConsoleDimensions:
        columns, lines = terminal_size()
        return ConsoleDimensions(self._wanted or columns, lines)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._wanted = new_size[0]

    def on_broken_pipe(self) -> None:
        """Leave it to the caller; rich would close our stdout and exit with an error."""
        raise BrokenPipeError
