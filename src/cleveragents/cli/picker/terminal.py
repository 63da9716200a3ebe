"""The picker at a terminal: the other screen and single keys while it is there, and both back.

In which order: the terminal's settings are kept, then changed; the other screen is taken; whatever
happens then, a signal included, goes through `finally`, and the first comes last.
"""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from cleveragents.cli.picker.drawing import room_for_rows, screen
from cleveragents.cli.picker.keys import KeyReader
from cleveragents.cli.picker.spans import drawn
from cleveragents.cli.picker.state import Picker, PickerRow, Preview, Want
from cleveragents.cli.render.text import write

_OTHER_SCREEN, _OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_TOP, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_USUAL = (80, 24)
_ESCAPE_SECONDS = 0.05
"""After this long an Escape is a key, and not the beginning of another one."""

_LOOK_SECONDS = 0.25
"""A signal that comes just before we wait would else be heard only with the next key."""

Look = Callable[[PickerRow], Preview]


def pick(picker: Picker, look: Look, *, colours: bool) -> str | None:
    """The id of what shall be restored; None if nothing. Raises KeyboardInterrupt at Ctrl-C."""
    with _other_screen(), _resizes() as resized:
        keys = KeyReader()
        while picker.wants is None:
            columns, lines = _size()
            picker = picker.sized(room_for_rows(lines, picker.mode), columns)
            _draw(picker, columns, lines, colours=colours)
            picker = _pressed(picker, _keys(keys, resized), look)
    if picker.wants is Want.INTERRUPT:
        raise KeyboardInterrupt
    chosen = picker.chosen
    return chosen.target if picker.wants is Want.RESTORE and chosen else None


def _pressed(picker: Picker, keys: list[str], look: Look) -> Picker:
    for key in keys:
        picker = picker.press(key)
        if picker.wants is Want.LOOK and picker.chosen is not None:
            picker = picker.looked(look(picker.chosen))
        if picker.wants is not None:
            break
    return picker


def _keys(keys: KeyReader, resized: int) -> list[str]:
    """What is pressed next; nothing where the window has another size now."""
    inputs = [sys.stdin.fileno(), resized]
    while True:
        patience = _ESCAPE_SECONDS if keys.waits else _LOOK_SECONDS
        ready, _, _ = select.select(inputs, [], [], patience)
        if resized in ready:
            os.read(resized, 64)
            return []
        if not ready and keys.waits:
            return keys.rest()
        if not ready:
            continue
        data = os.read(inputs[0], 1024)
        if not data:  # the terminal is gone
            return ["ctrl-c"]
        found = keys.feed(data)
        if found:
            return found


def _draw(picker: Picker, columns: int, lines: int, *, colours: bool) -> None:
    rows = drawn(screen(picker, columns, lines), columns, colours=colours)
    text = f"{_CLEAR_LINE}\r\n".join(rows)
    write(sys.stdout, f"{_TOP}{text}{_CLEAR_LINE}{_CLEAR_BELOW}")


def _size() -> tuple[int, int]:
    """As it is now: what the environment says was so when the shell began."""
    try:
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return _USUAL
    return columns or _USUAL[0], lines or _USUAL[1]


@contextmanager
def _other_screen() -> Generator[None]:
    descriptor = sys.stdin.fileno()
    before: list[Any] = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)
        write(sys.stdout, _OTHER_SCREEN)
        yield
    finally:
        try:
            write(sys.stdout, _OWN_SCREEN)
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _resizes() -> Generator[int]:
    """A descriptor that has something to read whenever the window was given another size."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def tell(_number: int, _frame: object) -> None:
        os.write(writing, b".")

    before = signal.signal(signal.SIGWINCH, tell)
    try:
        yield reading
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)
