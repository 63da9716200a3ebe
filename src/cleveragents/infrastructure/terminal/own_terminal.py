"""A terminal of a program's own, between it and the user's: it can be large, coloured and typed at.

The program never has the user's terminal itself: it could type there, and would leave it as it is.
"""

import os
import select
import signal
import termios
from collections.abc import Sequence
from contextlib import suppress

from cleveragents.infrastructure.processes.process_tree import place_of
from cleveragents.infrastructure.terminal.relays import (
    KeptOutput,
    Outlet,
    Printing,
    ProgramEnds,
    Stoppable,
    closed,
)
from cleveragents.infrastructure.terminal.user_terminal import LeftOn, UserTerminal

_CHUNK = 1 << 12
_STOPPED = (b"T",)


class OwnTerminal(KeptOutput):
    """`typed`: keys come from the user's terminal; otherwise the program reads our input itself."""

    def __init__(self, output: int, *, typed: bool) -> None:
        super().__init__()
        self._ours, self._theirs = os.openpty()
        stdin = self._theirs if typed else 0
        self.ends = ProgramEnds(
            stdin=stdin, stdout=self._theirs, stderr=self._theirs, controls=True
        )
        self._typed = typed
        self._keys_over = not typed
        self._pending = b""
        self._shown = Outlet(output)
        self._left_on = LeftOn()
        self._is_closed = self._theirs_closed = False
        self._program: int | None = None
        self.user = UserTerminal(0 if typed else output, output)
        termios.tcsetattr(self._theirs, termios.TCSANOW, self.user.attributes)
        self.user.fit(self._ours)

    @property
    def sources(self) -> Sequence[int]:
        keys = [0] if not self._keys_over and not self._pending else []
        return [*self._open, *keys]

    @property
    def sinks(self) -> Sequence[int]:
        return self._open if self._pending else ()

    def started(self, process: Printing) -> None:  # noqa: ARG002 - its streams are ours
        self._close_theirs()
        os.set_blocking(self._ours, False)
        self._open = [self._ours]
        self.user.follow_size(self._ours)
        self.hand_over()

    def hand_over(self) -> None:
        if self._typed:
            self.user.hand_over(self._left_on.undoing)

    def serve(self, *, whole: bool) -> bytes:
        self._type()
        return super().serve(whole=whole)

    def look(self, running: Stoppable) -> None:
        """If it was stopped by Ctrl-Z, or by itself, so are we: the user is back in the shell, and
        whoever lets us go on lets it go on too."""
        if not self._typed or running.is_suspended:
            return
        if self._program is None:
            self._program = running.program()
        place = place_of(self._program) if self._program is not None else None
        if place is None or place.state not in _STOPPED:
            return
        self.take_back()
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        self.hand_over()
        self.user.fit(self._ours)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(place.group, signal.SIGCONT)

    def close(self) -> None:
        self.take_back()
        self.user.let_go()
        self.user.stop_following()
        self._close_theirs()
        if not self._is_closed:
            self._is_closed = True
            closed(self._ours)
        self._open = []

    def take_back(self) -> None:
        """The user's terminal as it was, also if the program was ended in the middle."""
        self.user.take_back()
        undoing = self._left_on.undoing
        self._left_on = LeftOn()
        if undoing:
            self._shown.write(undoing)

    def _heard(self, number: int, chunk: bytes) -> None:  # noqa: ARG002 - there is one
        before = self._left_on.undoing
        self._left_on.see(chunk)
        if self._typed and self._left_on.undoing != before:
            self.user.will_need(self._left_on.undoing)
        self._shown.write(chunk)

    def _type(self) -> None:
        """Hand keys on; those that the program does not take yet wait, and later ones with them."""
        if not self._pending and not self._keys_over and select.select([0], [], [], 0)[0]:
            try:
                self._pending = os.read(0, _CHUNK)
            except OSError:  # the terminal is gone
                self._pending = b""
            self._keys_over = not self._pending
        if self._pending and self._open:
            try:
                self._pending = self._pending[os.write(self._ours, self._pending) :]
            except BlockingIOError:
                return
            except OSError:
                self._pending = b""

    def _close_theirs(self) -> None:
        if not self._theirs_closed:
            self._theirs_closed = True
            closed(self._theirs)
