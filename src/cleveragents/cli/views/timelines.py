"""How a plan's history looks: one line of what is known of all, one row for each step."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from cleveragents.cli.render.blocks import Cell, Grid, Shown, text_of
from cleveragents.cli.views.words import ago, count, short_times, state_word, toned
from cleveragents.domain.changes import ChangeKind, FileChange
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointReason
from cleveragents.domain.ids import endings
from cleveragents.domain.places import place_of
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.timeline import TimelineRow

if TYPE_CHECKING:
    from cleveragents.application.services.plans.plan_queries import PlanTimeline

HERE = Cell("● here", "good")
UNDONE = Cell("undone", "dim")
_KIND_WORDS = {ChangeKind.ADDED: "new", ChangeKind.DELETED: "gone"}


def timeline_grid(found: "PlanTimeline", *, unfolded: bool = False) -> Grid:
    """The newest first. What no longer counts is told only where all is asked for; what leads back
    from a rollback always is."""
    now = found.now
    rows = _rows(found, unfolded=unfolded)
    short = endings(str(group.group_id) for group in found.groups)
    times = short_times([row.when for row in rows], now)
    cells: list[Sequence[Shown]] = []
    for row, when in zip(rows, times, strict=True):
        cells.append(_cells(row, when, short))
        if unfolded and len(row.groups) > 1:
            cells += [_group_cells(group, short, now) for group in reversed(row.groups)]
    return Grid(
        found.plan.name,
        ["#", "when", "step", "what changed", ""],
        cells,
        empty="no checkpoints yet: agents plan execute makes them",
        facts=[*about(found.plan, found.resources, now, abandoned=found.abandoned), _sum(found)],
        cut=("step", "what changed"),
    )


def about(
    plan: Plan, resources: Sequence[PlanResource], now: datetime, *, abandoned: bool
) -> Sequence[Shown]:
    """Where it belongs, how it stands and since when."""
    since = plan.finished_at or plan.started_at or plan.created_at
    word = state_word(plan, abandoned=abandoned)
    return [
        *place_words(resources),
        Cell(f"{word} {ago(since, now)}", toned(word).tone),
    ]


def place_words(resources: Sequence[PlanResource]) -> Sequence[str]:
    place = place_of(resources)
    if place is None:
        return []
    return [place.rstrip("/").rpartition("/")[2] or place]


def what_to_type(found: "PlanTimeline", *, unfolded: bool) -> list[str]:
    """Whether there is more to see, and how to go back."""
    parts = [] if found.plan.is_final else [*_ways(found)]
    groups = len(found.groups)
    if not unfolded and groups > len([row for row in found.line.rows if _is_told(row)]):
        parts.append(f"all {count(groups, 'group')}: --all")
    return ["     ".join(parts)] if parts else []


def _ways(found: "PlanTimeline") -> Iterator[str]:
    """In the words of a list, or in those of a log."""
    plan_id, line = found.plan.plan_id, found.line
    numbers = [row.number for row in line.rows if row.number is not None and row.group]
    before = [number for number in numbers if number < line.stands_at]
    if found.brief is None:
        target = before[-1] if before else numbers[-1] if numbers else None
        if target is not None:
            yield f"back to one: agents plan rollback {plan_id} {target}"
        return
    if before:
        yield f"back: agents undo --plan {plan_id}"
    if any(row.undone for row in found.brief):
        yield f"forward again: agents redo --plan {plan_id}"


def changes_in_words(changes: Sequence[FileChange], files: int) -> str:
    """One file by its name, more by the first and how many; nothing is a dash."""
    if not changes:
        return count(files, "file") if files else "–"
    first = changes[0]
    word = f" {_KIND_WORDS[first.kind]}" if first.kind in _KIND_WORDS else ""
    more = len({change.path for change in changes}) - 1
    return f"{first.path}{word}" if not more else f"{first.path}{word}, {more} more"


def _rows(found: "PlanTimeline", *, unfolded: bool) -> Sequence[TimelineRow]:
    rows = found.line.rows
    if not unfolded:
        rows = [r for r in rows if _is_told(r)] if found.brief is None else found.brief
    return rows[::-1]


def _is_told(row: TimelineRow) -> bool:
    """What was taken back is not, unless a person has named it or it leads back there."""
    ways_back = (CheckpointReason.BEFORE_ROLLBACK, CheckpointReason.FILES_RESTORED)
    return not row.superseded or row.by_hand or row.reason in ways_back


def _cells(row: TimelineRow, when: str, short: Mapping[str, str]) -> Sequence[Shown]:
    name = str(row.number)
    if row.number is None:
        name = short[row.group.group_id] if row.group else ""
    told = changes_in_words(row.changes, row.files_changed) if row.number != 0 else ""
    last = HERE if row.here else UNDONE if row.undone else ""
    cells: list[Shown] = [Cell(name, "accent"), when, row.name, told, last]
    return [Cell(text_of(c), "dim") for c in cells] if row.superseded else cells


def _group_cells(
    group: CheckpointGroup, short: Mapping[str, str], now: datetime
) -> Sequence[Shown]:
    (when,) = short_times([group.created_at], now)
    cells = ["", when, f"  {group.label}", f"{short[group.group_id]}  {group.reason}", ""]
    return [Cell(cell, "dim") for cell in cells]


def _sum(found: "PlanTimeline") -> str:
    paths = {c.path for row in found.line.rows if not row.superseded for c in row.changes}
    return count(len(paths), "file")
