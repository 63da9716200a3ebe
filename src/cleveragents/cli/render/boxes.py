"""The `rich` and `table` formats: panels and tables that fit their terminal."""

from collections.abc import Mapping
from datetime import datetime
from typing import TextIO

from msgspec import Struct
from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from cleveragents.cli.render.blocks import Block, Code, CommandResult
from cleveragents.cli.render.bodies import body_of, code_text, hanging, paragraph, wanted_width
from cleveragents.cli.render.screen import Screen
from cleveragents.cli.render.text import one_line, write
from cleveragents.domain.errors import PlanError

_MARKS: Mapping[str, tuple[str, str]] = {
    "ok": ("✓", "bold green"),
    "warn": ("!", "bold yellow"),
    "error": ("✗", "bold red"),
}
_WIDEST_PANEL = 100  # beyond this the eye loses the line; only a table that needs more gets more
_EDGES = 4


class BoxStyle(Struct, frozen=True, kw_only=True):
    frame: box.Box
    border: str
    colours: bool


RICH = BoxStyle(frame=box.ROUNDED, border="blue", colours=True)
TABLE = BoxStyle(frame=box.SQUARE, border="", colours=False)


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

    def show(
        self, command: str, outcome: CommandResult, started: datetime, duration_ms: int
    ) -> None:
        del command, started, duration_ms  # for programs; a person has just typed the command
        console = self._console(self._stdout)
        parts = [part for block in outcome.blocks for part in self._block(block, console.width)]
        mark, style = _MARKS[outcome.status]
        parts += [hanging(Text(mark, style=style), paragraph(text)) for text in outcome.messages]
        _print(console, parts)
        if outcome.warnings:
            word = Text("warning:", style="bold yellow")
            _print(
                self._console(self._stderr),
                [hanging(word, paragraph(text)) for text in outcome.warnings],
            )

    def show_error(
        self, command: str, error: PlanError, started: datetime, duration_ms: int
    ) -> None:
        del command, started, duration_ms
        console = self._console(self._stderr)
        body: list[RenderableType] = [paragraph(error.message)]
        if error.hint:
            body += [Text(), hanging(Text("hint:", style="cyan"), paragraph(error.hint))]
        panel = Panel(
            Group(*body),
            box=self._look.frame,
            title=Text("Error", style="bold red"),
            title_align="left",
            subtitle=Text(error.code, style="dim"),
            subtitle_align="right",
            border_style="red",
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
        title = Text(one_line(block.title), style="bold")
        if isinstance(block, Code):
            # No frame: a patch is there to be copied.
            rule = Rule(title, align="left", style=self._look.border or "none")
            return [rule, code_text(block)] if block.title else [code_text(block)]
        panel = Panel(
            body_of(block, width - _EDGES),
            box=self._look.frame,
            title=title if block.title else None,
            title_align="left",
            border_style=self._look.border or "none",
            width=min(width, max(_WIDEST_PANEL, wanted_width(block) + _EDGES)),
        )
        return [panel]


def _print(console: Console, parts: list[RenderableType]) -> None:
    # Through a capture, because rich would stop at a character the stream cannot encode.
    with console.capture() as captured:
        for part in parts:
            # A bare text is code: the terminal folds it, so that a copy has its own lines only.
            console.print(part, soft_wrap=isinstance(part, Text))
    write(console.file, captured.get())
