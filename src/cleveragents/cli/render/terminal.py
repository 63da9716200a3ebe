"""How large the terminal is, whatever the environment says about it."""

import os

_SIZES = ("COLUMNS", "LINES")
_USUAL = (80, 25)
_SMALLEST = (20, 5)
_LARGEST = 1000


def terminal_size() -> tuple[int, int]:
    """Columns and lines that something can be shown on; what the environment says comes first."""
    columns, lines = (
        min(max(_told(name) or real, least), _LARGEST)
        for name, real, least in zip(_SIZES, _real_size(), _SMALLEST, strict=True)
    )
    return columns, lines


def _told(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _real_size() -> tuple[int, int]:
    """Of the terminal, which need not be where this goes: that may be a pipe to a pager."""
    for number in (0, 1, 2):
        try:
            columns, lines = os.get_terminal_size(number)
        except OSError:
            continue
        return columns or _USUAL[0], lines or _USUAL[1]
    return _USUAL
