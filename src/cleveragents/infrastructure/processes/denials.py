"""Owns how it is seen in a command's output that something was refused to it."""

import re

from cleveragents.domain.confinement import Confinement

_MOST_LINES = 10
_LONGEST = 300
_REFUSED = re.compile(
    r"permission denied|read-only file system|operation not permitted|\b(EACCES|EROFS|EPERM)\b",
    re.IGNORECASE,
)


def denied_lines(output: str) -> list[str]:
    """The lines in which a program says that it was not let; programs may also keep silent."""
    found = [line.strip()[:_LONGEST] for line in output.splitlines() if _REFUSED.search(line)]
    return found[:_MOST_LINES]


def denied_hint(asked: Confinement) -> str:
    network = "" if asked.network else ", and has no network"
    return (
        f"it may write only in the plan's sandboxes and in $TMPDIR{network}; "
        "allow more with `confinement` in the action file"
    )
