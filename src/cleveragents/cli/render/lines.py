"""The `plain` and `color` formats: aligned lines without boxes, easy to search and to diff."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from cleveragents.cli.render.blocks import (
    ASCII_GUIDES,
    Block,
    Branch,
    Cell,
    Code,
    CommandResult,
    Fields,
    Grid,
    Guides,
    Shown,
    Tone,
    Tree,
    branches,
    diff_tone,
    facts_of,
    is_list,
    numeric_columns,
    text_of,
    tone_of,
)
from cleveragents.cli.render.palette import sgr
from cleveragents.cli.render.text import fits, many_lines, one_line, width_of, write
from cleveragents.domain.errors import PlanError

_BOLD = "1"
_STATUS_TONE: Mapping[str, Tone] = {"ok": "good", "warn": "warn", "error": "bad"}


class LineRenderer:
    """Results to stdout, warnings and errors to stderr; never cut to a width."""

    def __init__(self, stdout: TextIO, stderr: TextIO, *, colours: bool) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._colours = colours
        self._guides = Guides() if fits("├└│─", stdout) else ASCII_GUIDES

    def show(self, outcome: CommandResult) -> None:
        text = "\n\n".join("\n".join(self._block(block)) for block in outcome.blocks)
        if outcome.messages:
            # What to type next belongs to a list.
            gap = "\n" if text and is_list(outcome.blocks[-1]) else "\n\n" if text else ""
            text += gap + "\n".join(self._messages(outcome))
        if text:
            write(self._stdout, text + "\n")
        if outcome.warnings:
            write(
                self._stderr, "".join(self._notice("warning", "warn", w) for w in outcome.warnings)
            )

    def show_error(self, error: PlanError) -> None:
        text = self._notice("error", "bad", error.message)
        text += self._notice("hint", "accent", error.hint) if error.hint else ""
        code = self._paint(f"code: {error.code}", "dim")
        write(self._stderr, f"{text}{code}\n")

    def _messages(self, outcome: CommandResult) -> Iterator[str]:
        for line in (line for text in outcome.messages for line in many_lines(text)):
            marked = outcome.done or outcome.status != "ok"
            yield self._paint(line, _STATUS_TONE[outcome.status] if marked else "plain")

    def _notice(self, word: str, tone: Tone, text: str) -> str:
        first, *rest = many_lines(text)
        lines = [f"{self._paint(f'{word}:', tone)} {first}", *(f"  {line}" for line in rest)]
        return "\n".join(lines) + "\n"

    def _block(self, block: Block) -> Iterator[str]:
        title = self._bold(one_line(block.title))
        heading = "; ".join([*([title] if title else []), *map(self._shown, facts_of(block))])
        if heading:
            yield heading
        # A patch stays as it is, so that it can be piped into `git apply`.
        indent = "  " if heading and not isinstance(block, Code) else ""
        for line in self._body(block):
            yield f"{indent}{line}".rstrip(" ") if indent else line

    def _body(self, block: Block) -> Iterator[str]:
        match block:
            case Fields():
                return self._fields(block)
            case Grid():
                return self._grid(block)
            case Tree():
                return self._tree(block.root)
            case Code():
                return self._code(block)

    def _fields(self, fields: Fields) -> Iterator[str]:
        names = [one_line(name) + ":" if name else "" for name, _ in fields.rows]
        widest = max((width_of(name) for name in names), default=0)
        for name, (_, value) in zip(names, fields.rows, strict=True):
            shown = self._shown(value)
            yield f"{name}{_gap(name, widest)} {shown}" if shown else name

    def _grid(self, grid: Grid) -> Iterator[str]:
        if not grid.rows:
            yield self._paint(one_line(grid.empty), "dim")
            return
        header = [[Cell(name, "dim") for name in grid.columns]] if any(grid.columns) else []
        table: list[Sequence[Shown]] = [*header, *grid.rows]
        widths = [max(width_of(one_line(text_of(c))) for c in column) for column in _turned(table)]
        right = numeric_columns(grid)
        for row in table:
            cells = zip(row, widths, right, strict=True)
            yield "  ".join(self._aligned(c, w, right=r) for c, w, r in cells).rstrip(" ")

    def _aligned(self, cell: Shown, width: int, *, right: bool) -> str:
        gap = _gap(one_line(text_of(cell)), width)
        return gap + self._shown(cell) if right else self._shown(cell) + gap

    def _tree(self, root: Branch) -> Iterator[str]:
        for lead, branch in branches(root, self._guides):
            text = self._paint(one_line(text_of(branch.text)), _branch_tone(branch))
            note = self._paint(f"({one_line(branch.note)})", "dim") if branch.note else ""
            yield f"{lead}{text}  {note}".rstrip(" ")

    def _code(self, code: Code) -> Iterator[str]:
        for line in many_lines(code.text):
            yield self._paint(line, diff_tone(line)) if code.language == "diff" else line

    def _shown(self, shown: Shown) -> str:
        return self._paint(one_line(text_of(shown)), tone_of(shown))

    def _bold(self, text: str) -> str:
        return f"\x1b[{_BOLD}m{text}\x1b[0m" if self._colours and text else text

    def _paint(self, text: str, tone: Tone) -> str:
        code = sgr(tone) if self._colours and text else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _branch_tone(branch: Branch) -> Tone:
    return "dim" if branch.dim else tone_of(branch.text)


def _gap(text: str, width: int) -> str:
    return " " * (width - width_of(text))


def _turned(rows: Sequence[Sequence[Shown]]) -> list[tuple[Shown, ...]]:
    return list(zip(*rows, strict=True))
