"""Bringing three versions of a text together line by line: what is agreed, what is disputed.

Regions that neither side changed hold the others apart. In between, the side that changed something
is taken; where both did, differently, the region is disputed. It finds the places and shows them;
whether two texts can be merged at all is git's word.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from difflib import SequenceMatcher

Lines = Sequence[bytes]
# Finding the common lines of longer texts would take longer than people wait.
MOST_LINES = 5_000


class Region(Struct, frozen=True, kw_only=True):
    """A part of the text. `line` is where it begins in ours, counted from 1.

    Not `disputed`: `ours` and `theirs` are the same, and what was agreed on.
    """

    line: int
    base: tuple[bytes, ...]
    ours: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    disputed: bool


def lines_of(text: bytes) -> list[bytes]:
    return text.splitlines(keepends=True)


def three_way(base: Lines, ours: Lines, theirs: Lines) -> list[Region]:
    """All of the text in regions; one that is disputed as a whole if it is too long to look at."""
    if max(len(base), len(ours), len(theirs)) > MOST_LINES:
        return [_disputed(0, base, ours, theirs)]
    found: list[Region] = []
    at = (0, 0, 0)
    for start, mine, other, size in _common(base, ours, theirs):
        if (start, mine, other) != at:
            parts = base[at[0] : start], ours[at[1] : mine], theirs[at[2] : other]
            found.append(_between(at[1], *parts))
        if size:
            kept = base[start : start + size]
            found.append(_agreed(mine, kept, kept))
        at = (start + size, mine + size, other + size)
    return found


def two_way(ours: Lines, theirs: Lines) -> list[Region]:
    """Without a version that both come from, every difference is disputed."""
    if max(len(ours), len(theirs)) > MOST_LINES:
        return [_disputed(0, (), ours, theirs)]
    found: list[Region] = []
    for tag, i, to, j, till in _matcher(ours, theirs).get_opcodes():
        same = tag == "equal"
        mine, other = ours[i:to], theirs[j:till]
        found.append(_agreed(i, mine, mine) if same else _disputed(i, (), mine, other))
    return found


def undone(base: Lines, ours: Lines, theirs: Lines) -> list[Region]:
    """Where `theirs`, which was made from ours, takes back what ours had changed in `base`."""
    if max(len(base), len(ours), len(theirs)) > MOST_LINES:
        return [_disputed(0, base, ours, theirs)]
    new, gone = _changes(base, ours)
    found: list[Region] = []
    for tag, i, to, j, till in _matcher(ours, theirs).get_opcodes():
        if tag == "equal":
            continue
        back = {line for place in range(i, to + 1) for line in gone.get(place, ())}
        if new.intersection(range(i, to)) or back.intersection(theirs[j:till]):
            found.append(_disputed(i, (), ours[i:to], theirs[j:till]))
    return found


def _changes(base: Lines, ours: Lines) -> tuple[set[int], dict[int, Lines]]:
    """The lines of ours that are new, and by the place in ours the lines that are gone there."""
    new: set[int] = set()
    gone: dict[int, Lines] = {}
    for tag, i, to, j, till in _matcher(base, ours).get_opcodes():
        if tag != "equal":
            new.update(range(j, till))
            gone[j] = base[i:to]
    return new, gone


def _common(base: Lines, ours: Lines, theirs: Lines) -> Iterator[tuple[int, int, int, int]]:
    """Where all three are the same: the places in each, and how many lines; the end comes last."""
    one = list(_matcher(base, ours).get_matching_blocks())
    two = list(_matcher(base, theirs).get_matching_blocks())
    i = j = 0
    while i < len(one) and j < len(two):
        start = max(one[i].a, two[j].a)
        end = min(one[i].a + one[i].size, two[j].a + two[j].size)
        if start < end:
            mine = one[i].b + start - one[i].a
            other = two[j].b + start - two[j].a
            yield start, mine, other, end - start
        if one[i].a + one[i].size < two[j].a + two[j].size:
            i += 1
        else:
            j += 1
    yield len(base), len(ours), len(theirs), 0


def _between(line: int, base: Lines, ours: Lines, theirs: Lines) -> Region:
    if list(theirs) in (list(base), list(ours)):
        return _agreed(line, base, ours)
    if list(ours) == list(base):
        return _agreed(line, base, theirs)
    return _disputed(line, base, ours, theirs)


def _agreed(line: int, base: Lines, text: Lines) -> Region:
    both = tuple(text)
    return Region(line=line + 1, base=tuple(base), ours=both, theirs=both, disputed=False)


def _disputed(line: int, base: Lines, ours: Lines, theirs: Lines) -> Region:
    return Region(
        line=line + 1, base=tuple(base), ours=tuple(ours), theirs=tuple(theirs), disputed=True
    )


def _matcher(one: Lines, two: Lines) -> "SequenceMatcher[bytes]":
    from difflib import SequenceMatcher  # noqa: PLC0415 - only a merge needs it

    # What is frequent is no noise here: a closing brace is as good a line as any.
    return SequenceMatcher(None, one, two, autojunk=False)
