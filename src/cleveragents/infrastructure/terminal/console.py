"""Where a program that a person runs is seen and typed at: our own streams, as they are now."""

import os

from cleveragents.infrastructure.terminal.own_terminal import OwnTerminal
from cleveragents.infrastructure.terminal.relays import PassedThrough, Relay
from cleveragents.infrastructure.terminal.user_terminal import has_the_terminal

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2


class Console:
    """With `aside`, our output is for an answer, and what the program prints goes to stderr."""

    def __init__(self, *, aside: bool) -> None:
        self._output = _ERRORS if aside else _OUTPUT
        self._open: OwnTerminal | None = None

    def open_relay(self) -> Relay:
        if not os.isatty(self._output):
            return PassedThrough((self._output, _ERRORS))
        typed = has_the_terminal(_INPUT) and has_the_terminal(self._output)
        self._open = OwnTerminal(self._output, typed=typed)
        return self._open

    def take_back(self) -> None:
        """The user's terminal as it was, from wherever we are."""
        if self._open is not None:
            self._open.take_back()
