"""A person's terminal: a shell in a window of 100 by 30, typed into, and read as it looks.

What is drawn goes to two screens: the window, and one that is as wide and as high as can be. What
differs between them did not fit.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyte

COLUMNS, LINES = 100, 30
_PROMPT = "\x1b]133;A\x07"  # the mark of shells for "a prompt begins"; nothing is drawn for it
_PATIENCE = 60.0
_UNBOUNDED, _NEVER = 1000, 1 << 30
# What asks a terminal what it is; pyte would draw the rest of what it does not know.
_PRIVATE = re.compile(r"\x1b\[[>=?][0-9;]*[mu]")

_SEQUENCE = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|\].*?\x07|[^\[\]])", re.DOTALL)


class Cell(NamedTuple):
    text: str
    colour: str  # "default", a name, or six hexadecimal digits
    bold: bool = False
    reverse: bool = False


class Screen(NamedTuple):
    """One moment of the window; `too_wide` are lines that did not fit into it, and `scrolled` is
    how many went over its upper edge."""

    rows: tuple[tuple[Cell, ...], ...]
    too_wide: tuple[str, ...] = ()
    scrolled: int = 0

    @property
    def lines(self) -> list[str]:
        return ["".join(cell.text for cell in row).rstrip() for row in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip("\n")

    def with_home(self, home: str) -> "Screen":
        """The same with `~` for this folder: it is another one wherever this is done."""
        return self._replace(rows=tuple(_with_home(row, home) for row in self.rows))


def _with_home(row: tuple[Cell, ...], home: str) -> tuple[Cell, ...]:
    text = "".join(cell.text or " " for cell in row)
    while (at := text.find(home)) >= 0:
        end = min(found for found in (text.find("  ", at), len(text)) if found >= 0)
        alone = " " not in text[at:end]  # what comes after it in a table stays where it is
        gap = (Cell(" ", "default"),) * (len(home) - 1 if alone else 0)
        tail = row[at + len(home) : end]
        row = (*row[:at], row[at]._replace(text="~"), *tail, *gap, *row[end:])
        text = "".join(cell.text or " " for cell in row)
    return row


class Terminal:
    """`type` presses keys; what is waited for is what a person would wait for: a prompt, or words
    on the screen."""

    def __init__(
        self, folder: Path, environ: Mapping[str, str], size: tuple[int, int] = (COLUMNS, LINES)
    ) -> None:
        self.columns, self.height = size
        self.pressed = 0
        self._window, self._drawing = _screen(self.columns, self.height)
        self._paper, self._unfolding = _screen(_UNBOUNDED, _UNBOUNDED)
        self._prompts = 0
        self._rest = b""
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(
            theirs, termios.TIOCSWINSZ, struct.pack("HHHH", self.height, self.columns, 0, 0)
        )
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            cwd=folder,
            env={
                **{key: value for key, value in environ.items() if key not in ("COLUMNS", "LINES")},
                "TERM": "xterm-256color",
                "PS1": rf"\[{_PROMPT}\]$ ",
                "HISTFILE": "",
                "LESSHISTFILE": "-",
            },
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._until(lambda: self._prompts == 1)

    def close(self) -> None:
        os.close(self._terminal)  # the shell hears that its terminal is gone
        self._shell.wait(_PATIENCE)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def enter(self, line: str) -> Screen:
        """Types a line and waits for the next prompt."""
        wanted = self._prompts + 1
        self.press(line + "\r")
        self._until(lambda: self._prompts >= wanted)
        return self.look()

    def press(self, keys: str) -> None:
        self.pressed += len(keys)
        os.write(self._terminal, keys.encode())

    def wait_for(self, words: str, *, prompt: bool = False) -> Screen:
        """Until these are on the screen; or, if that will do too, another prompt."""
        before = self._prompts if prompt else _NEVER
        self._until(lambda: words in "\n".join(self._window.display) or self._prompts > before)
        return self.look()

    def finish(self, keys: str) -> Screen:
        """Presses keys that end what runs; then there is a prompt again."""
        wanted = self._prompts + 1
        self.press(keys)
        self._until(lambda: self._prompts >= wanted)
        return self.look()

    def clear(self, line: str) -> None:
        """An empty window, but for the line that the cursor is in, as Ctrl-L leaves it."""
        self._window.reset()
        self._paper.reset()
        self._drawing.feed(line)
        self._unfolding.feed(line)

    def look(self) -> Screen:
        return Screen(
            rows=tuple(_row(self._window, y) for y in range(self.height)),
            too_wide=tuple(_wider(self._paper, self.columns)),
            scrolled=len(self._window.history.top),
        )

    def _until(self, condition: Any) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            ready, _, _ = select.select([self._terminal], [], [], 0.2)
            assert time.monotonic() < deadline, f"waited in vain:\n{self.look().text}"
            if ready:
                self._draw(os.read(self._terminal, 65536))

    def _draw(self, piece: bytes) -> None:
        whole, self._rest = _split(self._rest + piece)
        text = _PRIVATE.sub("", whole)
        self._prompts += text.count(_PROMPT)
        self._drawing.feed(text.replace(_PROMPT, ""))
        self._unfolding.feed(text.replace(_PROMPT, ""))


def _split(data: bytes) -> tuple[str, bytes]:
    """What can be read, and what is only the beginning: a read may cut anything in two."""
    begun = data.rfind(b"\x1b")
    if begun >= 0 and not _SEQUENCE.match(data, begun):
        return data[:begun].decode(), data[begun:]
    for keep in range(4):
        try:
            return data[: len(data) - keep].decode(), data[len(data) - keep :]
        except UnicodeDecodeError:
            continue
    raise AssertionError(f"no text: {data!r}")


def _screen(columns: int, lines: int) -> tuple[pyte.HistoryScreen, pyte.Stream]:
    screen = pyte.HistoryScreen(columns, lines, history=_UNBOUNDED, ratio=0.5)
    return screen, pyte.Stream(screen)


def _wider(paper: pyte.HistoryScreen, columns: int) -> Iterator[str]:
    for _, row in sorted(paper.buffer.items()):
        if any(x >= columns and cell.data.strip() for x, cell in row.items()):
            yield "".join(row[x].data for x in range(paper.columns)).rstrip()


def _row(screen: pyte.HistoryScreen, y: int) -> tuple[Cell, ...]:
    cells = [screen.buffer[y][x] for x in range(screen.columns)]
    return tuple(Cell(c.data, c.fg, bool(c.bold), bool(c.reverse)) for c in cells)
