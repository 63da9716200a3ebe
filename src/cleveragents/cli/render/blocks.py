"""What a command hands over to be shown: data for programs, blocks for people."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

Tone = Literal["good", "bad", "warn", "dim", "accent", "plain"]
Status = Literal["ok", "warn", "error"]

_DIFF_HEADER = re.compile(r"(diff|index) |(\+\+\+|---) (\"?[ab]/|/dev/null)")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*( ?([kMGT]?i?B|ms|s|%))?|-?")


class Cell(Struct, frozen=True):
    """A text with a meaning; each format shows the meaning in its own way, or not at all."""

    text: str
    tone: Tone = "plain"


Shown = str | Cell
"""Whatever may stand where a text is shown. It is untrusted: renderers neutralise it."""


class Fields(Struct, frozen=True):
    """Facts about one thing, as names and values."""

    title: str
    rows: Sequence[tuple[str, Shown]]


class Grid(Struct, frozen=True):
    """Many things of one kind, a row each; `empty` is said when there is none."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Shown]]
    empty: str = "nothing yet"


class Branch(Struct, frozen=True):
    text: Shown
    children: "Sequence[Branch]" = ()
    dim: bool = False
    note: str = ""


class Tree(Struct, frozen=True):
    title: str
    root: Branch


class Code(Struct, frozen=True):
    """Text whose lines and spaces matter, such as a patch (`language` "diff") or a file."""

    title: str
    text: str
    language: str = "text"


Block = Fields | Grid | Tree | Code


class CommandResult(Struct, frozen=True):
    """What a command did: `data` goes into the envelope, `blocks` onto the screen."""

    data: Mapping[str, Any]
    blocks: Sequence[Block] = ()
    messages: Sequence[str] = ()
    warnings: Sequence[str] = ()
    status: Status = "ok"
    exit_code: int = 0


def text_of(shown: Shown) -> str:
    return shown.text if isinstance(shown, Cell) else shown


def tone_of(shown: Shown) -> Tone:
    return shown.tone if isinstance(shown, Cell) else "plain"


def diff_tone(line: str) -> Tone:
    """What one line of a patch means; the file headers come first, as they start alike."""
    if _DIFF_HEADER.match(line):
        return "dim"
    if line.startswith("@@"):
        return "accent"
    if line.startswith("+"):
        return "good"
    return "bad" if line.startswith("-") else "plain"


def numeric_columns(grid: Grid) -> list[bool]:
    """Which columns hold only counts, sizes or shares (`-` for none): read from the right."""
    return [
        all(_NUMBER.fullmatch(text_of(row[index])) for row in grid.rows)
        for index in range(len(grid.columns))
    ]
