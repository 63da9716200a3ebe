"""A small process that gives the user's terminal back if ours is killed and cannot do it itself.

What: it waits at the end of a pipe. Each line says what to write to make the screen as it was; `.`
that all is as it was; `q` that it is not needed any more. When the pipe ends without that, whoever
had the other end was killed: the terminal gets its settings back, and what the last line says.
Why a process: nothing of ours runs after a `kill -9`, and keys would do nothing that one can see.
What is not guaranteed: it is in a session of its own, but who kills it as well has a raw terminal.
"""

import json
import subprocess
import sys
import termios
from contextlib import suppress
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


class TerminalGuard:
    """`showing` is the terminal, which has `attributes` as long as it is the user's."""

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
