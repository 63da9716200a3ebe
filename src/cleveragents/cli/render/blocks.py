"""What a command hands over to be shown: data for programs, blocks for people."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

Tone = Literal["good", "bad", "warn", "dim", "accent", "plain"]
Status = Literal["ok", "warn", "error"]

# Text, and compiled by whoever needs one first: every command loads this module.
_DIFF_HEADER = r"(diff|index) |(\+\+\+|---) (\"?[ab]/|/dev/null)"
_NUMBER = r"[-+]?\d[\d.,]*( ?([kMGT]?i?B|ms|s|%))?|-?"


class Cell(Struct, frozen=True):
    """A text with a meaning; each format shows the meaning in its own way, or not at all."""

    text: str
    tone: Tone = "plain"


Shown = str | Cell
"""Whatever may stand where a text is shown. It is untrusted: renderers neutralise it."""


class Fields(Struct, frozen=True):
    """Facts about one thing, as names and values; `facts` without names stand beside the title. A
    `framed` block is a panel where there are any; a frame is for what must not be overlooked, and
    lists have none."""

    title: str
    rows: Sequence[tuple[str, Shown]]
    facts: Sequence[Shown] = ()
    framed: bool = False


class Grid(Struct, frozen=True):
    """Many things of one kind, a row each; `empty` is said when there is none.

    `facts` stand beside the title. Where `cut` names columns, a row is one line: these are cut to
    what a terminal has room for.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Shown]]
    empty: str = "nothing yet"
    facts: Sequence[Shown] = ()
    cut: Sequence[str] = ()
    framed: bool = False


class Branch(Struct, frozen=True):
    text: Shown
    children: "Sequence[Branch]" = ()
    dim: bool = False
    note: str = ""


class Tree(Struct, frozen=True):
    """One line for each branch, cut to what a terminal has room for; its note stays whole."""

    title: str
    root: Branch
    facts: Sequence[Shown] = ()


class Code(Struct, frozen=True):
    """Text whose lines and spaces matter, such as a patch (`language` "diff") or a file."""

    title: str
    text: str
    language: str = "text"


Block = Fields | Grid | Tree | Code


class Invocation(Struct, frozen=True, kw_only=True):
    """One call of a command, which the envelope tells of."""

    command: str
    started: datetime
    duration_ms: int


class CommandResult(Struct, frozen=True):
    """What a command did: `data` goes into the envelope, `blocks` onto the screen.

    Only what is `done` gets a tick: neither a list nor a preview has done anything.
    """

    data: Mapping[str, Any]
    blocks: Sequence[Block] = ()
    messages: Sequence[str] = ()
    warnings: Sequence[str] = ()
    status: Status = "ok"
    exit_code: int = 0
    done: bool = False


def text_of(shown: Shown) -> str:
    return shown.text if isinstance(shown, Cell) else shown


def tone_of(shown: Shown) -> Tone:
    return shown.tone if isinstance(shown, Cell) else "plain"


def facts_of(block: Block) -> Sequence[Shown]:
    return () if isinstance(block, Code) else block.facts


def is_list(block: Block) -> bool:
    """Whether what to type next belongs to it, without an empty line between."""
    return isinstance(block, Grid | Tree) and bool(block.facts)


class Guides(Struct, frozen=True):
    """The lines that join a tree."""

    tee: str = "├── "
    end: str = "└── "
    bar: str = "│   "


ASCII_GUIDES = Guides("|-- ", "`-- ", "|   ")


def branches(
    branch: Branch, guides: Guides, lead: str = "", below: str = ""
) -> Iterator[tuple[str, Branch]]:
    """A tree line by line, each with what is drawn before it."""
    yield lead, branch
    for number, child in enumerate(branch.children, start=1):
        last = number == len(branch.children)
        yield from branches(
            child,
            guides,
            below + (guides.end if last else guides.tee),
            below + ("    " if last else guides.bar),
        )


def diff_tone(line: str) -> Tone:
    """What one line of a patch means; the file headers come first, as they start alike."""
    if re.match(_DIFF_HEADER, line):
        return "dim"
    if line.startswith("@@"):
        return "accent"
    if line.startswith("+"):
        return "good"
    return "bad" if line.startswith("-") else "plain"


def numeric_columns(grid: Grid) -> list[bool]:
    """Which columns hold only counts, sizes or shares (`-` for none): read from the right."""
    return [
        all(re.fullmatch(_NUMBER, text_of(row[index])) for row in grid.rows)
        for index in range(len(grid.columns))
    ]
