"""What a signal means while a command works: Ctrl-C, a polite kill and a closed terminal.

The first is an exception in the main thread: the running step is undone, the lock let go. That
exception can get lost, for Python and its libraries drop those that come up while an object is
taken down, a process is forked, or C calls back. So a thread watches over it: what got lost is
raised again; and from the second signal on a few seconds are left to end in order, whatever the
main thread is doing. No signal is ever ignored. What cannot be helped: a library that keeps Python
itself from running lets neither thread do anything.
"""

import os
import select
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130
_REMINDER = signal.SIGALRM
_LOOK_SECONDS = 0.1
_SECONDS_LEFT = 5.0
_LAST_WORDS = (
    b"error: interrupted again before all was in order; "
    b"the next command on this plan finishes or undoes what is left\n"
)
_SHOW_CURSOR = b"\x1b[?25h"


class Interruption(KeyboardInterrupt):
    """Of a class of its own, so that it can be told whether anybody still has it."""


class Interruptions:
    def __init__(self) -> None:
        self._raised: weakref.ref[Interruption] | None = None
        self._heard = 0
        self._arrived = self._ended = False
        self._pipe: tuple[int, int] | None = None
        self._before: tuple[Any, Any] | None = None
        self.last_act: Callable[[], None] | None = None
        """What is done before the end, if there is no time for anything else."""

    def heed(self) -> None:
        """From now on; a second call changes nothing."""
        if self._pipe is not None:
            return
        reading, writing = self._pipe = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        # A copy of this process gets a terminal's signals too, and would tell us of its own.
        os.register_at_fork(after_in_child=self._be_silent)
        self._before = (sys.unraisablehook, signal.getsignal(_REMINDER))
        sys.unraisablehook = _quiet
        threading.Thread(target=self._watch, args=(reading,), daemon=True).start()
        for number in (*INTERRUPTIONS, _REMINDER):
            signal.signal(number, self._interrupt)

    def arrived(self) -> None:
        """The command has come to its end, by an interruption or otherwise: nothing is lost."""
        self._arrived = True

    def end(self) -> None:
        """The command is over, and its signals are nobody's any more."""
        self._ended = True
        if self._pipe is None or self._before is None:
            return
        signal.set_wakeup_fd(-1)
        os.close(self._pipe[1])  # the thread closes the other one
        sys.unraisablehook, reminded = self._before
        signal.signal(_REMINDER, reminded)

    # --- in the main thread ---------------------------------------------------------------------

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._ended:
            os._exit(INTERRUPTED)
        # Once is enough: what undoes the running step must not be cut short by more of it.
        if not (self._arrived or self._is_under_way()):
            raise self._interruption()

    def _interruption(self) -> Interruption:
        # Not a variable of whoever raises it: the traceback would keep it for ever.
        made = Interruption()
        self._raised = weakref.ref(made)
        return made

    def _is_under_way(self) -> bool:
        return self._raised is not None and self._raised() is not None

    def _be_silent(self) -> None:
        if self._pipe is not None and not self._ended:
            signal.set_wakeup_fd(-1)

    # --- in the thread that watches -------------------------------------------------------------

    def _watch(self, reading: int) -> None:
        end_at: float | None = None
        while self._listen(reading):
            if self._heard > 1 and end_at is None:
                end_at = time.monotonic() + _SECONDS_LEFT
            if end_at is not None and time.monotonic() > end_at:
                _end_at_once(self.last_act)
            if self._is_lost():
                signal.pthread_kill(threading.main_thread().ident or 0, _REMINDER)
        os.close(reading)

    def _listen(self, reading: int) -> bool:
        """Count the signals that come, for a while; False at the end."""
        patience = _LOOK_SECONDS if self._heard else None
        if not select.select([reading], [], [], patience)[0]:
            return True
        numbers = os.read(reading, 64)
        self._heard += sum(number in INTERRUPTIONS for number in numbers)
        return bool(numbers)

    def _is_lost(self) -> bool:
        if self._arrived or self._ended or self._raised is None:
            return False
        return self._raised() is None


def leave_with(code: int) -> None:
    """Nothing is left to be done or undone: from now on a signal ends the process, quietly."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        os._exit(code)

    for number in INTERRUPTIONS:
        signal.signal(number, leave)


def _end_at_once(last_act: Callable[[], None] | None) -> None:
    """Like a kill, which loses nothing; what the step has started ends with us."""
    try:
        if last_act is not None:
            last_act()
        shown = _SHOW_CURSOR if os.isatty(2) else b""
        if select.select([], [2], [], 0)[1]:  # a terminal that was stopped must not keep us
            os.write(2, shown + _LAST_WORDS)
    finally:
        os._exit(INTERRUPTED)


def _quiet(dropped: "sys.UnraisableHookArgs") -> None:
    """That an interruption was dropped is no news: it is raised again."""
    if not isinstance(dropped.exc_value, Interruption):
        sys.__unraisablehook__(dropped)
