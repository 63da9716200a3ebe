"""The `rich` and `table` formats: panels and tables that fit their terminal."""

from collections.abc import Iterator, Mapping
from typing import TextIO

from msgspec import Struct
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from cleveragents.cli.render.blocks import (
    Block,
    Code,
    CommandResult,
    Fields,
    Grid,
    Tree,
    facts_of,
    is_list,
)
from cleveragents.cli.render.bodies import (
    DIM,
    body_of,
    code_text,
    hanging,
    heading,
    paragraph,
    paragraph_block,
    wanted_width,
)
from cleveragents.cli.render.palette import style
from cleveragents.cli.render.screen import Screen
from cleveragents.cli.render.text import one_line, write
from cleveragents.domain.errors import PlanError

_MARKS: Mapping[str, tuple[str, str]] = {
    "ok": ("✓", style("good", bold=True)),
    "warn": ("!", style("warn", bold=True)),
    "error": ("✗", style("bad", bold=True)),
}
_WIDEST_PANEL = 100  # beyond this the eye loses the line; only a table that needs more gets more
_EDGES = 4
_INDENT = 2


class BoxStyle(Struct, frozen=True, kw_only=True):
    """`frames_all`: whoever asks for tables gets them; else only what is `framed` has a frame."""

    frame: box.Box
    border: str
    colours: bool
    frames_all: bool


RICH = BoxStyle(frame=box.ROUNDED, border=DIM, colours=True, frames_all=False)
TABLE = BoxStyle(frame=box.SQUARE, border="", colours=False, frames_all=True)


class BoxRenderer:
    """Results to stdout, warnings and errors to stderr."""

    def __init__(
        self, stdout: TextIO, stderr: TextIO, look: BoxStyle, *, width: int | None, no_color: bool
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._look = look
        self._width = width
        self._no_color = no_color

    def show(self, outcome: CommandResult) -> None:
        console = self._console(self._stdout)
        parts: list[RenderableType] = []
        for number, block in enumerate(outcome.blocks):
            apart = number and not self._is_framed(block)
            parts += [*([Text()] if apart else []), *self._block(block, console.width)]
        if outcome.blocks and outcome.messages and not self._touches(outcome.blocks[-1]):
            parts.append(Text())
        _print(console, [*parts, *_messages(outcome)])
        if outcome.warnings:
            word = Text("warning:", style=style("warn", bold=True))
            _print(
                self._console(self._stderr),
                [hanging(word, paragraph(text)) for text in outcome.warnings],
            )

    def show_error(self, error: PlanError) -> None:
        console = self._console(self._stderr)
        body: list[RenderableType] = [paragraph(error.message)]
        if error.hint:
            hint = Text("hint:", style=style("accent"))
            body += [Text(), hanging(hint, paragraph(error.hint))]
        panel = Panel(
            Group(*body),
            box=self._look.frame,
            title=Text("Error", style=style("bad", bold=True)),
            title_align="left",
            subtitle=Text(error.code, style=DIM),
            subtitle_align="right",
            border_style=style("bad"),
            width=min(console.width, _WIDEST_PANEL),
        )
        _print(console, [panel])

    def _console(self, stream: TextIO) -> Console:
        return Screen(
            stream,
            width=self._width,
            color_system="auto" if self._look.colours else None,
            no_color=self._no_color,
        )

    def _block(self, block: Block, width: int) -> list[RenderableType]:
        if isinstance(block, Code):
            # No frame: a patch is there to be copied.
            title = Text(one_line(block.title), style="bold")
            return [title, code_text(block)] if block.title else [code_text(block)]
        if self._is_framed(block):
            return [self._panel(block, width)]
        named = block.title or facts_of(block)
        # What follows what is known of all is a list of it, and needs no title of its own.
        edge = _INDENT if named else 0
        body = Padding(body_of(block, width - edge), (0, 0, 0, edge))
        return [heading(block.title, facts_of(block), width), body] if named else [body]

    def _panel(self, block: Fields | Grid | Tree, width: int) -> Panel:
        title = heading(block.title, facts_of(block), width - _EDGES)
        return Panel(
            body_of(block, width - _EDGES),
            box=self._look.frame,
            title=title if title.plain else None,
            title_align="left",
            border_style=self._look.border or "none",
            width=min(width, max(_WIDEST_PANEL, wanted_width(block) + _EDGES)),
        )

    def _is_framed(self, block: Block) -> bool:
        if isinstance(block, Code):
            return False
        return self._look.frames_all or (isinstance(block, Fields | Grid) and block.framed)

    def _touches(self, block: Block) -> bool:
        return self._is_framed(block) or is_list(block)


def _messages(outcome: CommandResult) -> Iterator[RenderableType]:
    """What was done has a tick, what went wrong a cross, once; the rest stands below it."""
    mark, colour = _MARKS[outcome.status]
    marked = outcome.done or outcome.status != "ok"
    for number, text in enumerate(outcome.messages):
        first = Text(mark, style=colour) if number == 0 else Text(" ")
        yield hanging(first, paragraph(text)) if marked else paragraph_block(text)


def _print(console: Console, parts: list[RenderableType]) -> None:
    # Through a capture, because rich would stop at a character the stream cannot encode.
    with console.capture() as captured:
        for part in parts:
            # A bare text is code: the terminal folds it, so that a copy has its own lines only.
            console.print(part, soft_wrap=isinstance(part, Text))
    write(console.file, captured.get())
