"""How results look, one renderer per format; `make_renderer` chooses once."""

from datetime import datetime
from typing import Protocol, TextIO

from cleveragents.cli.render.blocks import CommandResult
from cleveragents.domain.errors import PlanError


class Renderer(Protocol):
    def show(
        self, command: str, outcome: CommandResult, started: datetime, duration_ms: int
    ) -> None: ...

    def show_error(
        self, command: str, error: PlanError, started: datetime, duration_ms: int
    ) -> None: ...


def make_renderer(
    format: str,
    *,
    stdout: TextIO,
    stderr: TextIO,
    width: int | None = None,
    no_color: bool = False,
) -> Renderer:
    """The renderer for `format`; `width` is the terminal's own unless given.

    Each imports only what it needs: a script that reads JSON does not wait for rich.
    """
    if format in ("json", "yaml"):
        from cleveragents.cli.render.envelope import (  # noqa: PLC0415
            EnvelopeRenderer,
            to_json,
            to_yaml,
        )

        return EnvelopeRenderer(stdout, to_json if format == "json" else to_yaml)
    if format in ("plain", "color"):
        from cleveragents.cli.render.lines import LineRenderer  # noqa: PLC0415

        return LineRenderer(stdout, stderr, colours=format == "color" and not no_color)
    if format in ("rich", "table"):
        from cleveragents.cli.render.boxes import (  # noqa: PLC0415
            RICH,
            TABLE,
            BoxRenderer,
        )

        look = RICH if format == "rich" else TABLE
        return BoxRenderer(stdout, stderr, look, width=width, no_color=no_color)
    raise ValueError(f"unknown format {format!r}")
