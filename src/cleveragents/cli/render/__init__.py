"""How results look, one renderer per format; `make_renderer` chooses once."""

from typing import Protocol, TextIO

from cleveragents.cli.render.blocks import CommandResult, Invocation
from cleveragents.domain.errors import PlanError


class Renderer(Protocol):
    def show(self, outcome: CommandResult) -> None: ...

    def show_error(self, error: PlanError) -> None: ...


def make_renderer(
    format: str,
    call: Invocation,
    *,
    stdout: TextIO,
    stderr: TextIO,
    width: int | None = None,
    no_color: bool = False,
) -> Renderer:
    """The renderer for `format`; `width` is the terminal's own unless given. Only programs are told
    of the `call`: a person has just typed it.

    Each imports only what it needs: a script that reads JSON does not wait for rich.
    """
    if format in ("json", "yaml"):
        from cleveragents.cli.render.envelope import EnvelopeRenderer, to_json, to_yaml  # noqa: PLC0415

        return EnvelopeRenderer(call, stdout, to_json if format == "json" else to_yaml)
    if format in ("plain", "color"):
        from cleveragents.cli.render.lines import LineRenderer  # noqa: PLC0415

        return LineRenderer(stdout, stderr, colours=format == "color" and not no_color)
    if format in ("rich", "table"):
        from cleveragents.cli.render.boxes import RICH, TABLE, BoxRenderer  # noqa: PLC0415

        look = RICH if format == "rich" else TABLE
        return BoxRenderer(stdout, stderr, look, width=width, no_color=no_color)
    raise ValueError(f"unknown format {format!r}")
