"""The colours of every format: few, and each readable on a light and on a dark terminal.

They are of the fixed part of the 256 colours: what a theme makes of `yellow` or `dim` may vanish on
a white or a black ground; these differ enough from both (a test measures it). A colour never is the
only thing that says something.
"""

from collections.abc import Mapping

from cleveragents.cli.render.blocks import Tone

COLOURS: Mapping[Tone, int] = {
    "good": 28,
    "bad": 160,
    "warn": 130,
    "dim": 243,
    "accent": 31,
}


def style(tone: Tone, *, bold: bool = False) -> str:
    """As rich names it."""
    number = COLOURS.get(tone)
    words = [*(["bold"] if bold else []), *([] if number is None else [f"color({number})"])]
    return " ".join(words)


def sgr(tone: Tone) -> str:
    """As a terminal is told it."""
    number = COLOURS.get(tone)
    return "" if number is None else f"38;5;{number}"
