"""The user's own terminal while a program of theirs has it, and that it is theirs again after.

In which order: what it is like is remembered; it hands every key on as it is typed; at the end it
is what it was, and whatever the program switched on and left so is switched off.
Why: Ctrl-C and Ctrl-Z are keys for the program then, and not for us; and a program that was killed
leaves a full screen, a hidden cursor or a mouse that types.
"""

import json
import os
import re
import signal
import subprocess
import sys
import termios
import tty
from contextlib import suppress
from types import FrameType
from typing import Any

_SCRIPT = """
import json, os, sys, termios
settings, last = json.loads(sys.argv[1]), "."
for line in sys.stdin:
    last = line.strip()
    if last == "q":
        os._exit(0)
if last != ".":
    termios.tcsetattr(1, termios.TCSANOW, settings)
    os.write(1, bytes.fromhex(last))
"""
_CHARACTERS = 6
_MODES = re.compile(rb"\x1b\[\?([0-9;]+)([hl])")
_KEYBOARD = re.compile(rb"\x1b\[([<>])[0-9;]*u")
_CURSOR = b"25"
_LONGEST_SEQUENCE = 32
# As every terminal starts: these are on, and off is what a program does to them.
_USUALLY_ON = (_CURSOR, b"7")


class TerminalGuard:
    """A small process that gives the user's terminal back if ours is killed and cannot itself.

    What: it waits at the end of a pipe. Each line says what to write to make the screen as it was;
    `.` that all is as it was; `q` that it is not needed any more. When the pipe ends without that,
    whoever had the other end was killed: the terminal gets its settings back, and what the last
    line says.
    Why a process: nothing of ours runs after a `kill -9`, and keys would do nothing that one can
    see. What is not guaranteed: it is in a session of its own, but who kills it as well has a raw
    terminal.

    `showing` is the terminal, which has `attributes` as long as it is the user's."""

    def __init__(self, showing: int, attributes: list[Any]) -> None:
        settings = json.dumps([*attributes[:_CHARACTERS], _plain(attributes[_CHARACTERS])])
        # Isolated, and without what a site adds: it is there at once, and loads nobody's code.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SCRIPT, settings],
            stdin=subprocess.PIPE,
            stdout=showing,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def arm(self, undoing: bytes) -> None:
        """From now on the terminal is not the user's; this makes its screen theirs again."""
        self._say(undoing.hex())

    def disarm(self) -> None:
        self._say(".")

    def dismiss(self) -> None:
        """It is not needed any more, and gone when this is back."""
        self._say("q")
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it was killed: we are still there ourselves
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()


def guarded(showing: int, attributes: list[Any]) -> TerminalGuard | None:
    """None where no further process can be had: the program runs all the same."""
    try:
        return TerminalGuard(showing, attributes)
    except (OSError, termios.error):
        return None


def _plain(characters: list[bytes | int]) -> list[int]:
    return [item if isinstance(item, int) else item[0] for item in characters]


class LeftOn:
    """Which of the terminal's modes a program has changed and not changed back."""

    def __init__(self) -> None:
        self._changed: dict[bytes, bool] = {}
        self._keyboards = 0
        self._tail = b""

    def see(self, printed: bytes) -> None:
        text = self._tail + printed
        for found in _MODES.finditer(text):
            for mode in found[1].split(b";"):
                self._changed[mode] = found[2] == b"h"
        for found in _KEYBOARD.finditer(text):
            self._keyboards = max(0, self._keyboards + (1 if found[1] == b">" else -1))
        # A sequence may come in two pieces; a whole one must not be seen twice.
        begun = text.rfind(b"\x1b", max(0, len(text) - _LONGEST_SEQUENCE))
        is_whole = begun < 0 or re.match(rb"\x1b\[[?<>]?[0-9;]*[@-~]", text[begun:])
        self._tail = b"" if is_whole else text[begun:]

    @property
    def undoing(self) -> bytes:
        """What makes the terminal as it was."""
        off = [mode for mode, on in self._changed.items() if on and mode not in _USUALLY_ON]
        on = [mode for mode, on in self._changed.items() if not on and mode in _USUALLY_ON]
        undo = b"".join(b"\x1b[?" + mode + b"l" for mode in reversed(off))
        undo += b"".join(b"\x1b[?" + mode + b"h" for mode in on)
        return b"\x1b[<u" * self._keyboards + undo


class UserTerminal:
    """`reading` is where keys come from, `showing` where it shows; both are the same terminal."""

    def __init__(self, reading: int, showing: int) -> None:
        self._reading = reading
        self._showing = showing
        self._before: list[Any] | None = None
        self._guard: TerminalGuard | None = None
        self._told: Any = None

    @property
    def attributes(self) -> list[Any]:
        return termios.tcgetattr(self._reading)

    @property
    def size(self) -> tuple[int, int]:
        return termios.tcgetwinsize(self._showing)

    def hand_over(self, undoing: bytes = b"") -> None:
        """From now on every key is the program's. Whoever kills us has the terminal back, and
        `undoing` written to it."""
        if self._before is None:
            self._before = termios.tcgetattr(self._reading)
        if self._guard is None:
            self._guard = guarded(self._showing, self._before)
        self.will_need(undoing)
        tty.setraw(self._reading, termios.TCSADRAIN)

    def will_need(self, undoing: bytes) -> None:
        """What would have to be written now to make the screen as it was."""
        if self._guard is not None and self._before is not None:
            self._guard.arm(undoing)

    def let_go(self) -> None:
        """It is the user's for good. A second call changes nothing."""
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.dismiss()

    def take_back(self) -> None:
        """As it was; a second call changes nothing, nor does it if the terminal is gone."""
        before, self._before = self._before, None
        if before is None:
            return
        # We may have been put in the background meanwhile, where this would stop us.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTTOU,))
        try:
            termios.tcsetattr(self._reading, termios.TCSADRAIN, before)
        except termios.error:
            pass
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            if self._guard is not None:
                self._guard.disarm()

    def follow_size(self, terminal: int) -> None:
        """Make that terminal as large as this one, now and whenever this one changes."""

        def changed(_number: int, _frame: FrameType | None) -> None:
            self.fit(terminal)

        self.fit(terminal)
        self._told = signal.signal(signal.SIGWINCH, changed)

    def fit(self, terminal: int) -> None:
        try:
            termios.tcsetwinsize(terminal, self.size)
        except (OSError, termios.error):
            return  # one of them is gone

    def stop_following(self) -> None:
        if self._told is not None:
            signal.signal(signal.SIGWINCH, self._told)
            self._told = None


def has_the_terminal(number: int) -> bool:
    """Whether it is a terminal, and we are not in its background."""
    try:
        return os.isatty(number) and os.tcgetpgrp(number) == os.getpgrp()
    except OSError:  # a terminal that is not ours to control
        return False
