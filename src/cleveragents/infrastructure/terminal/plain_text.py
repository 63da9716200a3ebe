"""What a program has printed as text to be read later: without colours, moves and redrawn lines."""

import re

# CSI, OSC and the like, then the short ones; what is left of a cut one goes with the controls.
_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\\\)|\x1b[ -/]*[0-~]", re.DOTALL
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_EMPTY_LINES = re.compile(r"\n{3,}")


def plain_text(printed: bytes) -> str:
    text = printed.decode("utf-8", "backslashreplace")
    if "\x1b" not in text and "\r" not in text:
        return text
    text = _SEQUENCES.sub("", text).replace("\r\n", "\n")
    # Of a line that was written over, what was there last is what was seen.
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return _EMPTY_LINES.sub("\n\n", _CONTROLS.sub("", "\n".join(lines)))
