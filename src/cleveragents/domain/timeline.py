"""A plan's history as people read it and name it: a row for each step, and for what else there is.

Number 0 is the start, number n the state in which n steps were over. A group belongs to the row of
its number; what is a moment of its own (a label by hand, what a rollback keeps, restored files, the
middle of a step) has a row without a number (ADR 0079). Lists, names, completion and the Python API
all stand on this.

In which order: groups that count are folded by number, and where numbers go down again the later
ones are left behind (`_passes`); every step that is over gets its row, with groups or without; then
come the rows left behind and the moments; last which one is here, and all by when they happened.
What is not guaranteed: that a number stays what it was. After a correction or a rollback it names
the step of the line that the plan is on now, and pruning can leave a row without a group.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.action import COMMAND, step_number
from cleveragents.domain.changes import FileChange
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointReason
from cleveragents.domain.decision import Decision, DecisionType, ToolCall
from cleveragents.domain.ids import CheckpointId
from cleveragents.domain.plan import Plan

START = "start"
_MOMENTS = (
    CheckpointReason.MANUAL,
    CheckpointReason.BEFORE_ROLLBACK,
    CheckpointReason.FILES_RESTORED,
    CheckpointReason.AFTER_SUBPLAN,
    CheckpointReason.BEFORE_APPLY,
)
SAID_BY_PEOPLE = ("correct", "prompt")


class TimelineRow(Struct, frozen=True, kw_only=True):
    """`group` is what going back to this row leads to; a step whose groups were pruned, or that a
    correction has left as it was, has none. `groups` are all that are folded into it, oldest first.
    `undone` is what is superseded and can be redone, where somebody has asked (`undo.py`).
    """

    number: int | None = None
    name: str
    group: CheckpointGroup | None
    groups: tuple[CheckpointGroup, ...] = ()
    changes: tuple[FileChange, ...] = ()
    here: bool = False
    superseded: bool = False
    undone: bool = False

    @property
    def when(self) -> datetime | None:
        return self.group.created_at if self.group else None

    @property
    def reason(self) -> CheckpointReason | None:
        return self.group.reason if self.group else None

    @property
    def by_hand(self) -> bool:
        return self.group is not None and self.group.labelled_by_hand

    @property
    def files_changed(self) -> int:
        """By its calls; where there was none, what was found when the group was made."""
        if self.number is not None or self.changes:
            return len({change.path for change in self.changes})
        found = self.group.checkpoints if self.group else ()
        return sum(int(item.metadata.get("files_changed", 0)) for item in found)

    def holds(self, head: CheckpointId | None) -> bool:
        return any(group.head == head for group in self.groups)


class Timeline(Struct, frozen=True, kw_only=True):
    """`rows` are in their order, the oldest first. `stands_at` is what `-1` counts from: the number
    of the steps that are over, and one more in the middle of a step."""

    rows: tuple[TimelineRow, ...]
    stands_at: int

    def numbered(self, number: int) -> TimelineRow | None:
        return next((row for row in self.rows if row.number == number), None)

    def before(self, steps: int) -> TimelineRow | None:
        """So many steps before where the plan stands."""
        return self.numbered(self.stands_at - steps)

    @property
    def here(self) -> TimelineRow | None:
        return next((row for row in self.rows if row.here), None)


def timeline(
    plan: Plan, groups: Sequence[CheckpointGroup], calls: Iterable[ToolCall] = ()
) -> Timeline:
    """`groups` are all of the plan's, oldest first; without `calls` no row says what changed."""
    if plan.head is None and plan.last_completed_step < 0 and not groups:
        return Timeline(rows=(), stands_at=0)
    present, behind = _passes([g for g in groups if not g.superseded], plan.last_completed_step)
    made = list(calls)
    numbered = _numbered(plan, present, _by_step(made))
    by_decision = _by_decision(made)
    others = [*behind, *_runs([g for g in groups if g.superseded and not is_moment(g)])]
    rows = [
        *numbered,
        *(_left_behind(found, by_decision) for found in others),
        *_moments(groups, numbered),
    ]
    rows = _with_here(plan, rows)
    return Timeline(rows=tuple(_in_order(rows)), stands_at=_stands_at(plan, rows))


class MovedStep(Struct, frozen=True, kw_only=True):
    """A step as it was called when it was decided; its number counts from 1."""

    number: int
    name: str


def moved_steps(
    some: Iterable[Decision], others: Iterable[Decision], last: int
) -> tuple[MovedStep, ...]:
    """The steps that were decided in `some` and not in `others`, up to the one with index `last`:
    what comes after it was decided only."""
    known = {decision.decision_id for decision in others}
    return tuple(
        MovedStep(number=step_number(index), name=step_name(decision))
        for decision in some
        if is_step(decision)
        and decision.decision_id not in known
        and (index := decision.step_index) is not None
        and index <= last
    )


def step_name(decision: Decision) -> str:
    """Without the tool."""
    return decision.chosen.partition(": ")[2] or decision.chosen


def is_step(decision: Decision) -> bool:
    """Whether it has a number: what people say has none of its own."""
    said = decision.type is DecisionType.USER_INTERVENTION
    return decision.step_index is not None and not said


def is_moment(group: CheckpointGroup) -> bool:
    """Whether it has a row of its own, and is not folded into that of a step."""
    return (
        is_told(group)
        or group.reason in _MOMENTS
        or group.labelled_by_hand
        or is_within_step(group)
    )


def is_told(group: CheckpointGroup) -> bool:
    """Whether a person said something then."""
    return group.reason is CheckpointReason.DECISION and group.source in SAID_BY_PEOPLE


def is_within_step(group: CheckpointGroup) -> bool:
    """Whether it was taken while a step was half done."""
    return group.reason is CheckpointReason.ON_ERROR or any(
        state.boundary != state.snapshot for state in group.resource_states
    )


Fold = list[CheckpointGroup]


def _passes(live: Sequence[CheckpointGroup], last: int) -> tuple[Mapping[int, Fold], list[Fold]]:
    """By number, the groups of the present line; and those that it has gone over again: after a
    correction, the steps that were done anew have others."""
    present: dict[int, Fold] = {}
    behind: list[Fold] = []
    highest = -1
    for group in live:
        if is_moment(group):
            continue
        number = group.last_completed_step + 1
        if number < highest:
            behind += [present.pop(later) for later in sorted(present) if later > number]
        present.setdefault(number, []).append(group)
        highest = number
    behind += [present.pop(later) for later in sorted(present) if later > last + 1]
    return present, behind


def _numbered(
    plan: Plan, present: Mapping[int, Fold], changes: Mapping[int, tuple[FileChange, ...]]
) -> list[TimelineRow]:
    """One for the start and for each step that is over, without a gap."""
    steps = (*plan.action.steps, *plan.action.validations)
    rows: list[TimelineRow] = []
    for number in range(plan.last_completed_step + 2):
        index, folded = number - 1, present.get(number, [])
        name = steps[index].name if 0 <= index < len(steps) else f"step {number}"
        rows.append(
            TimelineRow(
                number=number,
                name=name if number else START,
                group=leads_to(folded, index, by_program=plan.action.actor.type == COMMAND),
                groups=tuple(folded),
                changes=changes.get(index, ()),
            )
        )
    return rows


def leads_to(
    folded: Sequence[CheckpointGroup], index: int, *, by_program: bool = False
) -> CheckpointGroup | None:
    """The last that was made for the step itself: the ones of the next step hold the same files,
    but its decision too.

    A program that is its own memory notes how a call has ended only after that group was made; it
    has done so when it asks for the next one.
    """
    decided = [g for g in folded if g.step_index > index and g.reason is CheckpointReason.DECISION]
    if by_program and index >= 0 and decided:
        return decided[0]
    of_the_step = [group for group in folded if group.step_index == index]
    return of_the_step[-1] if of_the_step else next(iter(folded), None)


def _runs(groups: Sequence[CheckpointGroup]) -> list[Fold]:
    """Those of one line of history and one number that follow each other."""
    found = groupby(groups, lambda g: (g.position.timeline, g.last_completed_step))
    return [list(run) for _, run in found]


def _left_behind(
    folded: Fold, changes: Mapping[tuple[str, int], tuple[FileChange, ...]]
) -> TimelineRow:
    """What no longer is the plan's history; its label is what is known of its step."""
    index = folded[0].last_completed_step
    group = leads_to(folded, index) or folded[0]
    by = dict.fromkeys(str(item.decision_id) for item in folded)
    return TimelineRow(
        name=group.label,
        group=group,
        groups=tuple(folded),
        changes=tuple(change for key in by for change in changes.get((key, index), ())),
        superseded=True,
    )


def _moments(
    groups: Sequence[CheckpointGroup], numbered: Sequence[TimelineRow]
) -> Iterator[TimelineRow]:
    numbers = {str(group.group_id): row.number for row in numbered for group in row.groups}
    labels = {str(group.group_id): group.label for group in groups}
    for group in groups:
        if is_moment(group):
            yield TimelineRow(
                name=_moment_name(group, numbers, labels),
                group=group,
                groups=(group,),
                superseded=group.superseded,
            )


def _moment_name(
    group: CheckpointGroup, numbers: Mapping[str, int | None], labels: Mapping[str, str]
) -> str:
    """What a rollback has kept is called by where it led to, as that is called now."""
    target = next((item.metadata.get("target") for item in group.checkpoints), None)
    if target is None or target not in labels or group.source in SAID_BY_PEOPLE:
        return group.label
    number = numbers.get(target)
    return f"before going back to {labels[target] if number is None else number}"


def _with_here(plan: Plan, rows: Sequence[TimelineRow]) -> list[TimelineRow]:
    """Exactly one: the moment that the plan stands on, or the last of its steps that are over."""
    done = plan.last_completed_step
    moments = [row for row in rows if row.number is None and not row.superseded]
    here = next(
        (
            row
            for row in moments
            if row.holds(plan.head) and row.group and row.group.last_completed_step == done
        ),
        None,
    )
    return [
        replace(row, here=True) if row is here or (here is None and row.number == done + 1) else row
        for row in rows
    ]


def _stands_at(plan: Plan, rows: Sequence[TimelineRow]) -> int:
    here = next(row for row in rows if row.here)
    half_done = plan.mid_step or (here.group is not None and is_within_step(here.group))
    done = plan.last_completed_step + 1
    # A step that failed, and of which its actor knows, is over without a group of its own: what
    # stands behind it is the error, and one step back is before that step.
    failed = any(row.number == done and row.group is None for row in rows)
    return done + (1 if half_done and not failed else 0)


def _in_order(rows: Sequence[TimelineRow]) -> list[TimelineRow]:
    """As they happened; a step without a group comes after the one before it."""
    at, keys = 0, dict[int, int]()
    for row in rows:
        if row.number is not None:
            at = row.group.position.seq if row.group else at
            keys[row.number] = at

    def place(row: TimelineRow) -> tuple[int, int]:
        if row.number is not None:
            return keys[row.number], row.number
        return (row.group.position.seq if row.group else 0), -1

    return sorted(rows, key=place)


def _by_step(calls: Sequence[ToolCall]) -> Mapping[int, tuple[FileChange, ...]]:
    """What counts of each step."""
    found: dict[int, list[FileChange]] = {}
    for call in calls:
        if not call.undone:
            found.setdefault(call.step_index, []).extend(call.changes)
    return {index: tuple(changes) for index, changes in found.items()}


def _by_decision(calls: Sequence[ToolCall]) -> Mapping[tuple[str, int], tuple[FileChange, ...]]:
    found: dict[tuple[str, int], list[FileChange]] = {}
    for call in calls:
        found.setdefault((call.decision_id, call.step_index), []).extend(call.changes)
    return {key: tuple(changes) for key, changes in found.items()}
