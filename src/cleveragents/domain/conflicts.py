"""The two sides of a conflict: how they are told, and what a person decides about them."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from cleveragents.domain.errors import UsageError
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


ConflictKey = tuple[PlanId, str, str]
"""The child, the resource and the path that a conflict is about."""


class Choice(StrEnum):
    """What a person can say about one conflict."""

    OURS = "ours"
    THEIRS = "theirs"
    EDIT = "edit"


class Resolution(Struct, frozen=True, kw_only=True):
    """What a person decides about conflicts that were told: a text of their own, a side for one of
    them, or a side for all others."""

    side: Side | None = None
    sides: Mapping[ConflictKey, Side] = field(default_factory=dict[ConflictKey, Side])
    edited: Mapping[ConflictKey, bytes] = field(default_factory=dict[ConflictKey, bytes])

    def __bool__(self) -> bool:
        return self.side is not None or bool(self.sides) or bool(self.edited)

    def answer(self, child: PlanId, resource: str, path: str) -> Side | bytes | None:
        key = (child, resource, path)
        return self.edited.get(key, self.sides.get(key, self.side))


def chosen(
    conflicts: Sequence[ConflictKey], named: Sequence[tuple[str, Choice]]
) -> Mapping[ConflictKey, Choice]:
    """What was said about each; those that nobody named are not in it.

    A name is a path or a folder, of any resource or of the one before its colon; a whole path
    counts before a folder. Raises UsageError for a name that no conflict has, and for two choices.
    """
    for name, _ in named:
        if not any(_closeness(name, key) for key in conflicts):
            known = ", ".join(dict.fromkeys(f"{key[1]}:{key[2]}" for key in conflicts))
            raise UsageError(f"no conflict is about {name!r}", f"there are: {known}")
    found: dict[ConflictKey, Choice] = {}
    for key in conflicts:
        fitting = [(_closeness(name, key), choice) for name, choice in named]
        closest = max((close for close, _ in fitting), default=0)
        choices = {choice for close, choice in fitting if close == closest and close}
        if len(choices) > 1:
            said = " and ".join(sorted(choices))
            raise UsageError(f"{key[1]}:{key[2]} is named twice: {said}", "say one of them")
        if choices:
            found[key] = choices.pop()
    return found


def _closeness(name: str, key: ConflictKey) -> int:
    """0 if the name does not fit; else the longer the more of the path is named."""
    _, resource, path = key
    for wanted in (name.rstrip("/"), name.rstrip("/").removeprefix(f"{resource}:")):
        if wanted and (wanted == path or path.startswith(f"{wanted}/")):
            return len(wanted)
    return 0


UNDECIDED = Resolution()
