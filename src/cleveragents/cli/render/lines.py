"""The `plain` and `color` formats: aligned lines without boxes, easy to search and to diff."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TextIO

from cleveragents.cli.render.blocks import (
    Block,
    Branch,
    Cell,
    Code,
    CommandResult,
    Fields,
    Grid,
    Shown,
    Tone,
    Tree,
    diff_tone,
    numeric_columns,
    text_of,
    tone_of,
)
from cleveragents.cli.render.text import fits, many_lines, one_line, width_of, write
from cleveragents.domain.errors import PlanError

_SGR: Mapping[str, str] = {
    "good": "32",
    "bad": "31",
    "warn": "33",
    "dim": "2",
    "accent": "36",
    "title": "1",
    "plain": "",
}
_STATUS_TONE: Mapping[str, Tone] = {"ok": "good", "warn": "warn", "error": "bad"}


class LineRenderer:
    """Results to stdout, warnings and errors to stderr; never cut to a width."""

    def __init__(self, stdout: TextIO, stderr: TextIO, *, colours: bool) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._colours = colours
        self._guides = _Guides(ascii_only=not fits("├└│─", stdout))

    def show(
        self, command: str, outcome: CommandResult, started: datetime, duration_ms: int
    ) -> None:
        del command, started, duration_ms  # for programs; a person has just typed the command
        parts = ["\n".join(self._block(block)) for block in outcome.blocks]
        if outcome.messages:
            parts.append("\n".join(self._messages(outcome)))
        if parts:
            write(self._stdout, "\n\n".join(parts) + "\n")
        if outcome.warnings:
            write(
                self._stderr, "".join(self._notice("warning", "warn", w) for w in outcome.warnings)
            )

    def show_error(
        self, command: str, error: PlanError, started: datetime, duration_ms: int
    ) -> None:
        del command, started, duration_ms
        text = self._notice("error", "bad", error.message)
        text += self._notice("hint", "accent", error.hint) if error.hint else ""
        code = self._paint(f"code: {error.code}", "dim")
        write(self._stderr, f"{text}{code}\n")

    def _messages(self, outcome: CommandResult) -> Iterator[str]:
        for line in (line for text in outcome.messages for line in many_lines(text)):
            yield self._paint(line, _STATUS_TONE[outcome.status])

    def _notice(self, word: str, tone: Tone, text: str) -> str:
        first, *rest = many_lines(text)
        lines = [f"{self._paint(f'{word}:', tone)} {first}", *(f"  {line}" for line in rest)]
        return "\n".join(lines) + "\n"

    def _block(self, block: Block) -> Iterator[str]:
        title = one_line(block.title)
        if title:
            yield self._paint(title, "title")
        # A patch stays as it is, so that it can be piped into `git apply`.
        indent = "  " if title and not isinstance(block, Code) else ""
        for line in self._body(block):
            yield f"{indent}{line}".rstrip(" ") if indent else line

    def _body(self, block: Block) -> Iterator[str]:
        match block:
            case Fields():
                return self._fields(block)
            case Grid():
                return self._grid(block)
            case Tree():
                return self._tree(block.root, "", "")
            case Code():
                return self._code(block)

    def _fields(self, fields: Fields) -> Iterator[str]:
        names = [one_line(name) + ":" for name, _ in fields.rows]
        widest = max((width_of(name) for name in names), default=0)
        for name, (_, value) in zip(names, fields.rows, strict=True):
            shown = self._shown(value)
            yield f"{name}{_gap(name, widest)} {shown}" if shown else name

    def _grid(self, grid: Grid) -> Iterator[str]:
        if not grid.rows:
            yield self._paint(one_line(grid.empty), "dim")
            return
        header = [Cell(name, "dim") for name in grid.columns]
        table: list[Sequence[Shown]] = [header, *grid.rows]
        widths = [max(width_of(one_line(text_of(c))) for c in column) for column in _turned(table)]
        right = numeric_columns(grid)
        for row in table:
            cells = zip(row, widths, right, strict=True)
            yield "  ".join(self._aligned(c, w, right=r) for c, w, r in cells).rstrip(" ")

    def _aligned(self, cell: Shown, width: int, *, right: bool) -> str:
        gap = _gap(one_line(text_of(cell)), width)
        return gap + self._shown(cell) if right else self._shown(cell) + gap

    def _tree(self, branch: Branch, lead: str, below: str) -> Iterator[str]:
        text = self._paint(one_line(text_of(branch.text)), _branch_tone(branch))
        note = self._paint(f"({one_line(branch.note)})", "dim") if branch.note else ""
        yield f"{lead}{text}  {note}".rstrip(" ")
        for number, child in enumerate(branch.children, start=1):
            last = number == len(branch.children)
            yield from self._tree(
                child, below + self._guides.lead(last=last), below + self._guides.below(last=last)
            )

    def _code(self, code: Code) -> Iterator[str]:
        for line in many_lines(code.text):
            yield self._paint(line, diff_tone(line)) if code.language == "diff" else line

    def _shown(self, shown: Shown) -> str:
        return self._paint(one_line(text_of(shown)), tone_of(shown))

    def _paint(self, text: str, tone: str) -> str:
        code = _SGR[tone] if self._colours and text else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code else text


class _Guides:
    """The lines that join a tree, in ASCII where the stream has no others."""

    def __init__(self, *, ascii_only: bool) -> None:
        drawn = ("|-- ", "`-- ", "|   ") if ascii_only else ("├── ", "└── ", "│   ")
        self._tee, self._end, self._bar = drawn

    def lead(self, *, last: bool) -> str:
        return self._end if last else self._tee

    def below(self, *, last: bool) -> str:
        return "    " if last else self._bar


def _branch_tone(branch: Branch) -> Tone:
    return "dim" if branch.dim else tone_of(branch.text)


def _gap(text: str, width: int) -> str:
    return " " * (width - width_of(text))


def _turned(rows: Sequence[Sequence[Shown]]) -> list[tuple[Shown, ...]]:
    return list(zip(*rows, strict=True))
