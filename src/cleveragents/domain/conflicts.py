"""The two sides of a conflict: how they are told, and what a person decides about them."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from cleveragents.domain.ids import PlanId
from cleveragents.domain.threeway import Region

# More than this nobody reads on a screen, and it is stored with the plan.
MOST_HUNKS = 10
_MOST_LINES = 20
_LONGEST_LINE = 200


class Side(StrEnum):
    """Whose version a person takes: what the plan has already, or what the child made."""

    OURS = "ours"
    THEIRS = "theirs"


class Hunk(Struct, frozen=True, kw_only=True):
    """One place where the sides differ, as text for people; long ones are cut, and say so.

    `line` is where it begins in ours, counted from 1.
    """

    line: int
    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


def hunks_of(regions: Iterable[Region]) -> tuple[Hunk, ...]:
    disputed = [region for region in regions if region.disputed]
    return tuple(
        Hunk(
            line=region.line,
            base=shown_lines(region.base),
            ours=shown_lines(region.ours),
            theirs=shown_lines(region.theirs),
        )
        for region in disputed[:MOST_HUNKS]
    )


def shown_lines(lines: Sequence[bytes]) -> tuple[str, ...]:
    found = [_shown(line) for line in lines[:_MOST_LINES]]
    left = len(lines) - len(found)
    return (*found, f"… {left} more lines") if left else tuple(found)


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"


class Loss(Struct, frozen=True, kw_only=True):
    """What a merge left out of one file because a person chose the other side.

    `whose` is who had made it: a child, or a step of the plan. `count` is how many lines of a text
    are gone, of which `lines` has the first; 0 where it was the file as such.
    """

    resource: str
    path: str
    whose: str
    lines: tuple[str, ...] = ()
    count: int = 0

    def __str__(self) -> str:
        what = "1 line" if self.count == 1 else f"{self.count} lines"
        return f"{self.resource}:{self.path} ({what if self.count else 'what is'} of {self.whose})"


class LeftOut(Struct, frozen=True, kw_only=True):
    """What of one side a merge did not take, `lines` and `count` as in Loss."""

    path: str
    side: Side
    lines: tuple[str, ...] = ()
    count: int = 0


Edited = Mapping[tuple[PlanId, str, str], bytes]
"""By child, resource and path: what a person made of both sides."""


class Resolution(Struct, frozen=True, kw_only=True):
    """What a person decides about conflicts that were told: a side, or a text of their own."""

    side: Side | None = None
    edited: Edited = field(default_factory=dict[tuple[PlanId, str, str], bytes])

    def __bool__(self) -> bool:
        return self.side is not None or bool(self.edited)

    def answer(self, child: PlanId, resource: str, path: str) -> Side | bytes | None:
        return self.edited.get((child, resource, path), self.side)


UNDECIDED = Resolution()
