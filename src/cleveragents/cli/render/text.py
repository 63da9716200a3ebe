"""Untrusted text on its way to a terminal: it moves no cursor, stops no output."""

import re
from typing import IO

# Control characters (C0, DEL, C1), line and paragraph separators, the marks that reverse the
# direction of what follows, and lone surrogates, which stand for bytes that are not UTF-8.
# Patterns are text: they take longer to compile than most answers to render, and few need one.
UNSAFE = r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
_COLOURS = r"\x1b\[[0-9;]*m"
_KEPT_IN_BLOCKS = "\n\t"
_ORNAMENTS = str.maketrans({"─": "-", "│": "|", "✓": "*", "✗": "x", "•": "-", "·": "-", "…": "~"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """`text` on a single line, everything unsafe in it spelled out."""
    if text.isprintable():  # which nothing unsafe is
        return text
    return re.sub(UNSAFE, lambda match: _spelled(match[0]), text)


def many_lines(text: str) -> list[str]:
    """The lines of `text`; line ends and tabs count, everything else unsafe is spelled out."""
    if not all(line.isprintable() for line in text.split("\n")):
        text = re.sub(UNSAFE, lambda m: m[0] if m[0] in _KEPT_IN_BLOCKS else _spelled(m[0]), text)
    return text.removesuffix("\n").split("\n")


def real_unicode(text: str) -> str:
    """`text` without lone surrogates, which no encoding can carry."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(_spelled(c) if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def without_colours(text: str) -> str:
    """`text` as it is read; our own renderers put nothing else into it."""
    return re.sub(_COLOURS, "", text)


def width_of(text: str) -> int:
    """How many columns a terminal needs for `text`, which is on one line."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def fits(text: str, stream: IO[str]) -> bool:
    """Whether the stream's encoding has all characters of `text`."""
    try:
        text.encode(_encoding(stream))
    except UnicodeEncodeError:
        return False
    return True


def write(stream: IO[str], text: str) -> None:
    """Write and flush, so that a closed pipe is noticed here and not at exit."""
    if not fits(text, stream):
        encoding = _encoding(stream)
        text = text.translate(_ORNAMENTS).encode(encoding, "replace").decode(encoding)
    stream.write(text)
    stream.flush()


def _encoding(stream: IO[str]) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def _spelled(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _columns(character: str) -> int:
    from unicodedata import category, east_asian_width  # noqa: PLC0415 - most text is ASCII

    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
