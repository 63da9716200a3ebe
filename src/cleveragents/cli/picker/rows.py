"""A plan's history as the rows of the picker."""

from typing import TYPE_CHECKING

from cleveragents.cli.picker.state import Picker, PickerRow
from cleveragents.cli.render.blocks import text_of
from cleveragents.cli.render.text import one_line
from cleveragents.cli.views.timelines import HERE, UNDONE, about, changes_in_words
from cleveragents.cli.views.words import short_times
from cleveragents.domain.ids import endings
from cleveragents.domain.timeline import TimelineRow

if TYPE_CHECKING:
    from cleveragents.application.services.plans.plan_queries import PlanTimeline


def picker(found: "PlanTimeline") -> Picker:
    """The newest first, and the one that the plan stands at is chosen."""
    rows = [row for row in reversed(found.brief or ()) if row.group is not None]
    short = endings(str(group.group_id) for group in found.groups)
    times = short_times([row.when for row in rows], found.now)
    shown = [
        PickerRow(
            target=row.group.group_id,
            number=short[row.group.group_id] if row.number is None else str(row.number),
            when=when,
            name=one_line(row.name),
            changed=one_line(_changed(row)),
            mark=text_of(HERE) if row.here else text_of(UNDONE) if row.undone else "",
            dim=row.superseded,
            words=" ".join((row.group.label, *(change.path for change in row.changes))),
        )
        for row, when in zip(rows, times, strict=True)
        if row.group is not None
    ]
    here = next((at for at, row in enumerate(rows) if row.here), 0)
    facts = about(found.plan, found.resources, found.now, abandoned=found.abandoned)
    title = "  ".join((found.plan.name, *map(text_of, facts)))
    return Picker(title=title, rows=tuple(shown), at=here)


def _changed(row: TimelineRow) -> str:
    return "" if row.number == 0 else changes_in_words(row.changes, row.files_changed)
