"""Inside: finds the lines of files that match a regular expression.

A pattern can take any time, and nothing can stop it but the end of its process. This is started by
its path and loads nothing of this package: a question and an answer, both JSON.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import Any

MOST_MATCHES = 1000
_PIECE = 1 << 20  # a line without an end is looked at in pieces
_SHOWN_OF_A_LINE = 2000
_BEGINNING = 8192


class SearchProblem(Exception):  # noqa: N818 - it is an answer
    """Says what is wrong in a line; `is_pattern` tells whether the pattern is."""

    def __init__(self, what: str, *, is_pattern: bool = False) -> None:
        super().__init__(what)
        self.is_pattern = is_pattern


def main() -> None:
    asked: dict[str, Any] = json.load(sys.stdin)
    try:
        answer = _found(asked)
    except SearchProblem as problem:
        answer = {"problem": str(problem), "is_pattern": problem.is_pattern}
    except OSError as error:
        answer = {"problem": error.strerror or str(error), "is_pattern": False}
    json.dump(answer, sys.stdout)


def _found(asked: dict[str, Any]) -> dict[str, Any]:
    pattern = _compiled(asked["pattern"])
    lines: list[str] = []
    room: int = asked["most_bytes"]
    for name in sorted(files_below(asked["top"], asked["start"])):
        for line in _matches(os.path.join(asked["top"], name), name, pattern):
            if len(lines) == MOST_MATCHES or room < 0:
                return {"lines": lines, "more": True}
            lines.append(line)
            room -= len(line.encode("utf-8"))
    return {"lines": lines, "more": False}


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError) as error:
        raise SearchProblem(str(error), is_pattern=True) from None
    except RecursionError:
        raise SearchProblem("it is nested too deeply", is_pattern=True) from None


def files_below(top: str, start: str) -> Iterator[str]:
    """Their paths from `top`, in no order; what belongs to git is not looked at."""
    if os.path.isfile(start):
        yield os.path.relpath(start, top)
        return
    for folder, folders, files in os.walk(start, onerror=_raise):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            relative = os.path.relpath(os.path.join(folder, name), top)
            if relative != ".git":
                yield relative


def _raise(error: OSError) -> None:
    raise error


def _matches(path: str, name: str, pattern: re.Pattern[str]) -> Iterator[str]:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    with open(path, "rb") as file:
        if b"\0" in file.read(_BEGINNING):
            return
        file.seek(0)
        number = 1
        while piece := file.readline(_PIECE):
            text = piece.decode("utf-8", "replace").rstrip("\r\n")
            if found := pattern.search(text):
                yield f"{shown}:{number}:{_around(text, found.start())}"
            number += piece.endswith(b"\n")


def _around(text: str, at: int) -> str:
    """The line, or of a very long one the part where it was found."""
    if len(text) <= _SHOWN_OF_A_LINE:
        return text
    first = max(0, min(at - _SHOWN_OF_A_LINE // 2, len(text) - _SHOWN_OF_A_LINE))
    return f"… {text[first : first + _SHOWN_OF_A_LINE]} …"


if __name__ == "__main__":
    main()
