"""How a person names a checkpoint: by id or label or a part of these, or by number.

What still counts comes before what does not, and nothing is guessed (ADR 0079).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from cleveragents.domain.checkpoint import CheckpointGroup, PrunedCheckpoint
from cleveragents.domain.errors import (
    CheckpointAmbiguousError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
)
from cleveragents.domain.ids import PlanId, endings, id_part

if TYPE_CHECKING:
    from cleveragents.domain.timeline import Timeline, TimelineRow

_ORDINAL = r"0|-?[1-9][0-9]{0,8}"
_LIKE_A_NUMBER = r"[-+]?[0-9]+"


def looks_like_an_ordinal(label: str) -> bool:
    """What no checkpoint may be called by hand: it would be taken for a number of a step."""
    return re.fullmatch(_LIKE_A_NUMBER, label.strip()) is not None


class CheckpointNames:
    """What there is in one plan. `line` is made only where neither an id nor a label was typed:
    for that all groups have to be read."""

    def __init__(
        self,
        plan_id: PlanId,
        line: "Callable[[], Timeline]",
        owner_of: Callable[[str], PlanId | None],
        pruned: Callable[[PlanId, str], PrunedCheckpoint | None],
    ) -> None:
        self._plan_id = plan_id
        self._make_line = line
        self._owner_of = owner_of
        self._pruned = pruned

    def find(self, wanted: str, groups: Sequence[CheckpointGroup]) -> CheckpointGroup:
        """`groups` are those whose label this is, or whose id it is or begins or ends.

        Raises CheckpointNotFoundError, CheckpointAmbiguousError or CheckpointMismatchError.
        """
        name = wanted.strip()
        exact = [group for group in groups if name.upper() in group.names()]
        labelled = _most_meant([group for group in groups if group.label == name])
        found = self._one(name, exact) or self._one(name, labelled)
        if found is not None:
            return found
        row = self._by_number(name)
        if row is not None:
            return self._of_row(row, name)
        found = self._one(name, _by_part(groups, name))
        return found or self._by_name(name)

    @cached_property
    def _line(self) -> "Timeline":
        return self._make_line()

    def _by_number(self, name: str) -> "TimelineRow | None":
        if not re.fullmatch(_ORDINAL, name):
            return None
        number = int(name)
        return self._line.numbered(number) if number >= 0 else self._line.before(-number)

    def _of_row(self, row: "TimelineRow", name: str) -> CheckpointGroup:
        if row.group is None:
            why = (
                f"what step {row.number} left was pruned, or the step has failed, or a correction"
                " has left it alone"
            )
            raise CheckpointNotFoundError(self._plan_id, name, why)
        return row.group

    def _by_name(self, name: str) -> CheckpointGroup:
        rows = self._line.rows if name else ()
        whole = _rows_called(rows, name, whole=True)
        if whole:
            return self._only(name, whole)
        self._refuse_known(name)
        parts = _rows_called(rows, name, whole=False)
        if parts:
            return self._only(name, parts)
        every = [group for row in rows for group in row.groups]
        labels = [group for group in every if name.casefold() in group.label.casefold()]
        found = self._one(name, [g for g in labels if not g.superseded] or labels)
        if found is not None:
            return found
        raise CheckpointNotFoundError(self._plan_id, name)

    def _refuse_known(self, name: str) -> None:
        """What is gone, or another plan's, is told apart from what never was."""
        owner = self._owner_of(name.upper())
        if owner is not None and owner != self._plan_id:
            raise CheckpointMismatchError(name, owner, self._plan_id)
        gone = self._pruned(self._plan_id, name)
        if gone is not None:
            when = gone.pruned_at.isoformat(sep=" ", timespec="seconds")
            why = f"it was pruned at {when}: {gone.reason}"
            raise CheckpointNotFoundError(self._plan_id, name, why)

    def _only(self, name: str, rows: "Sequence[TimelineRow]") -> CheckpointGroup:
        if len(rows) == 1:
            return self._of_row(rows[0], name)
        groups = [row.group for row in rows if row.group is not None]
        found = self._one(name, groups)
        return found or self._of_row(rows[0], name)

    def _one(self, name: str, groups: Sequence[CheckpointGroup]) -> CheckpointGroup | None:
        if len(groups) > 1:
            told = told_apart(self._line, [group.group_id for group in groups])
            raise CheckpointAmbiguousError(self._plan_id, name, told)
        return groups[0] if groups else None


def told_apart(line: "Timeline", wanted: Iterable[str] | None = None) -> Sequence[str]:
    """One line for each: number, time, name and the ending of its id; the oldest first.

    Without `wanted` those that one would go back to, each row by its own group.
    """
    short = endings(str(g.group_id) for row in line.rows for g in row.groups)
    chosen = None if wanted is None else {str(item) for item in wanted}
    lines: list[str] = []
    for row in line.rows:
        shown = row.groups if chosen is not None else (row.group,) if row.group else ()
        for group in shown:
            if chosen is None or group.group_id in chosen:
                number = "" if row.number is None or group is not row.group else str(row.number)
                name = _called(row, group, both=chosen is not None)
                when = group.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
                gone = "  (superseded)" if row.superseded else ""
                lines.append(f"{number:>4}  {when}  {short[group.group_id]}  {name}{gone}")
    return lines


def _called(row: "TimelineRow", group: CheckpointGroup, *, both: bool) -> str:
    """As the list calls it; and by its label too, where either may be what was typed a part of."""
    if group is not row.group:
        return group.label
    return f"{row.name} ({group.label})" if both and row.name != group.label else row.name


def _most_meant(labelled: Sequence[CheckpointGroup]) -> Sequence[CheckpointGroup]:
    """A person's own label before a made one, and what still counts before what does not."""
    by_hand = [group for group in labelled if group.labelled_by_hand] or labelled
    return [group for group in by_hand if not group.superseded] or by_hand


def _by_part(groups: Sequence[CheckpointGroup], name: str) -> Sequence[CheckpointGroup]:
    """A group by its own id before one by that of a resource's checkpoint in it."""
    part = id_part(name)
    if part is None:
        return ()
    own = [group for group in groups if _fits(group.group_id, part)]
    return own or [group for group in groups if any(_fits(n, part) for n in group.names())]


def _fits(ulid: str, part: str) -> bool:
    return ulid.startswith(part) or ulid.endswith(part)


def _rows_called(
    rows: "Sequence[TimelineRow]", name: str, *, whole: bool
) -> "Sequence[TimelineRow]":
    """Steps and labels by hand before other moments, these before what is superseded."""
    wanted = name.casefold()
    fitting = [
        row
        for row in rows
        if (row.name.casefold() == wanted if whole else wanted in row.name.casefold())
    ]
    steps = [r for r in fitting if not r.superseded and (r.number is not None or r.by_hand)]
    return steps or [row for row in fitting if not row.superseded] or fitting
