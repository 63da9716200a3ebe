"""What a restore leaves as it is, and what that means for the times of what it brings back.

Old times are right where everything went back together. Where something stayed, be it excluded or
not chosen, it may have been made from what is replaced now, and be newer than that: whoever
compares times would take it for up to date. So what is brought back gets the present time then.
"""

import time
from collections.abc import Collection, Iterable

from cleveragents.infrastructure.files.entry import Entry, shown
from cleveragents.infrastructure.files.excludes import Excludes
from cleveragents.infrastructure.files.rooted_folder import RootedFolder
from cleveragents.infrastructure.files.walk import walk

_STEP_NS = 1000
_MOST_NAMED = 8


def times_now(entries: Iterable[Entry | None]) -> dict[int, int]:
    """A new time for each old one: all of them now, in the order that they had."""
    olds = sorted({entry.mtime_ns for entry in entries if entry is not None})
    first = time.time_ns() - len(olds) * _STEP_NS
    return {old: first + number * _STEP_NS for number, old in enumerate(olds, 1)}


def left_in_place(
    anchor: RootedFolder, exclude: Excludes, known: Collection[bytes] | None
) -> list[bytes]:
    """The topmost paths that the action excludes; `known` are they if they were seen already."""
    if not exclude.patterns:
        return []
    found = walk(anchor, exclude).excluded if known is None else known
    return sorted(path for path in found if path not in exclude.hidden)


def may_be_stale(resource: str, left: Collection[bytes]) -> list[str]:
    """What to tell people."""
    if not left:
        return []
    names = [shown(path) for path in left]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return [
        f"`{resource}`: what `exclude` left in place may be out of date:"
        f" {', '.join(names[:_MOST_NAMED])}{more}"
    ]
