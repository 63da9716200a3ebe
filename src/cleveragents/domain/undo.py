"""Where `undo` and `redo` lead to: one change back, and forward again along what was undone.

A plan's history is a tree: whatever was recorded has its place on a line, and a rollback lets a new
line begin at the place that it has led to. Nothing else is needed, and nothing else is kept: both
words are read from the groups and the lines that are on record (ADR 0086).

Undo: back along the line that the plan stands on, to the last group of other files. Redo: forward
along the line that was left last of those which go on from here. A step that has changed nothing
goes with the change before it, in both directions, so that each takes back the other.
What is not guaranteed: that a change is one step. What was pruned cannot be stopped at, and what
was done in the middle of a step is never stopped at, but for the place that was left there.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.action import COMMAND
from cleveragents.domain.checkpoint import CheckpointGroup, CheckpointReason
from cleveragents.domain.decision import Decision, Fork, Position, is_live, lineage
from cleveragents.domain.ids import DecisionId, GroupId, ResourceId
from cleveragents.domain.plan import Plan, State
from cleveragents.domain.timeline import (
    Timeline,
    TimelineRow,
    is_moment,
    is_step,
    is_told,
    is_within_step,
    leads_to,
    step_name,
)

Files = Mapping[ResourceId, str]
"""The hash of each resource's content."""
Run = Sequence[CheckpointGroup]
"""Groups with the same files that follow each other."""
_WAYS_BACK = (CheckpointReason.BEFORE_ROLLBACK, CheckpointReason.FILES_RESTORED)


class PlanPast(Struct, frozen=True, kw_only=True):
    """All that is on record: the groups in the order in which they were made, the oldest first."""

    plan: Plan
    groups: tuple[CheckpointGroup, ...]
    forks: tuple[Fork, ...]


def files_of(group: CheckpointGroup) -> Files:
    return {state.resource_id: state.state_hash for state in group.resource_states}


def undoable(past: PlanPast, present: Files | None = None) -> Sequence[CheckpointGroup]:
    """Where `undo` leads to, again and again, up to the start.

    `present` is what the sandboxes hold, where that is known better than by the last group.
    """
    line = _line(past, past.plan.timeline)
    stops = [group for group in line if not _is_passed_over(group)]
    left = files_of(line[-1]) if present is None and line else present
    found: list[CheckpointGroup] = []
    for files, run in _changes(stops[::-1]):
        if files != left:
            found.append(_stop(past.plan, run[::-1]))
        left = files
    return found


def redoable(past: PlanPast, present: Files | None = None) -> Sequence[CheckpointGroup]:
    """Where `redo` leads to, again and again; nothing once something else was done."""
    line = _line(past, past.plan.timeline)
    if not line or (present is not None and present != files_of(line[-1])):
        return []
    here = _alike_at_the_end(line)[0]
    found: list[CheckpointGroup] = []
    while runs := _ahead(past, here):
        found += [_stop(past.plan, run) for run in runs]
        here = _alike_at_the_end(_line_to(past, found[-1].position))[0]
    return found


def is_at_its_end(past: PlanPast) -> bool:
    """Whether the plan stands where it was complete once, and nothing was done or said since."""
    plan, line = past.plan, _line(past, past.plan.timeline)
    if plan.state is not State.QUEUED or plan.error is not None or not line:
        return False
    here = line[-1]
    ends = [group for group in past.groups if group.reason is CheckpointReason.COMPLETE]
    if any(group in ends for group in _alike_at_the_end(line)):
        return True
    if not ends and not plan.action.decides and not plan.action.validations:
        # To know that all written-down steps are done, nothing had to be recorded.
        return plan.last_completed_step + 1 >= len(plan.action.steps)
    return any(_leads_on(past, here, end) for end in ends)


def _leads_on(past: PlanPast, here: CheckpointGroup, end: CheckpointGroup) -> bool:
    """Whether from here to there nothing happened but that the plan was found to be complete."""
    if not leads_back(past, here, end):
        return False
    line = _line_to(past, end.position)
    later = [group for group in line if group.position.seq > here.position.seq]
    return all(place_of(group) == place_of(here) and not is_told(group) for group in later)


def leads_back(past: PlanPast, target: CheckpointGroup, left: CheckpointGroup) -> bool:
    """Whether going from `left` to `target` was a way back: the one came after the other."""
    return is_live(target.position, _reach(past, left.position))


def with_undone(past: PlanPast, line: Timeline, decisions: Iterable[Decision]) -> Timeline:
    """What was taken back and can be redone is marked, and called as its step was when it was
    decided."""
    ahead = redoable(past)
    if not ahead:
        return line
    kept = {group.group_id for group in _line_to(past, ahead[-1].position)}
    names = {item.decision_id: step_name(item) for item in decisions if is_step(item)}
    rows = [_marked(row, kept, names) for row in line.rows]
    return replace(line, rows=tuple(rows))


def brief_rows(line: Timeline) -> tuple[TimelineRow, ...]:
    """What counts and what a person has named; then what can be redone, and what a rollback has
    kept, each only where no other row has it."""
    shown = [row for row in line.rows if not row.superseded or row.by_hand]
    places = [place_of(row.group) for row in shown if row.group is not None]
    for row in sorted(line.rows, key=lambda row: not row.undone):
        if row.group is None or not (row.undone or row.reason in _WAYS_BACK):
            continue
        if place_of(row.group) not in places:
            places.append(place_of(row.group))
            shown.append(row)
    known = {id(row) for row in shown}
    return tuple(row for row in line.rows if id(row) in known)


def place_of(group: CheckpointGroup) -> tuple[Files, int, int]:
    """Two groups of the same place differ in nothing that people would go back for."""
    return files_of(group), group.last_completed_step, group.attempt


def _marked(
    row: TimelineRow, kept: Container[GroupId], names: Mapping[DecisionId, str]
) -> TimelineRow:
    group = row.group
    if group is None or not row.superseded or not _is_something_done(group):
        return row
    if all(item.group_id not in kept for item in row.groups):
        return row
    return replace(row, undone=True, name=_called(group, names) or row.name)


def _is_something_done(group: CheckpointGroup) -> bool:
    """A step that is over, or a moment of its own; not what was only decided, nor a way back."""
    if is_moment(group):
        return group.reason is not CheckpointReason.BEFORE_ROLLBACK
    return group.step_index <= group.last_completed_step


def _called(group: CheckpointGroup, names: Mapping[DecisionId, str]) -> str | None:
    """As the step was; what else there is has its label."""
    if group.decision_id is None or is_moment(group):
        return None
    return names.get(group.decision_id)


def _ahead(past: PlanPast, here: CheckpointGroup) -> Sequence[Run]:
    """The changes between here and the end of the line that was left last, of those that lead
    from here to anything else."""
    newest: dict[int, CheckpointGroup] = {g.position.timeline: g for g in past.groups}
    for end in sorted(newest.values(), key=lambda group: group.position.seq, reverse=True):
        if not leads_back(past, here, end):
            continue
        line = _line_to(past, end.position)
        later = [group for group in line if group.position.seq > here.position.seq]
        stops = [group for group in later if group is end or not _is_passed_over(group)]
        runs = [run for _, run in _changes([here, *stops])][1:]
        if runs:
            return runs
    return []


def _is_passed_over(group: CheckpointGroup) -> bool:
    return is_within_step(group) or group.reason is CheckpointReason.AFTER_SUBPLAN


def _changes(groups: Sequence[CheckpointGroup]) -> Iterator[tuple[Files, Run]]:
    return ((files, list(run)) for files, run in groupby(groups, files_of))


def _stop(plan: Plan, run: Run) -> CheckpointGroup:
    """Of groups with the same files the one to go to: that of the last step that was over then.

    What a rollback has kept is where a line was left, and there the actor may have known more.
    """
    last, alike = run[-1], _alike_at_the_end(run)
    by_program = plan.action.actor.type == COMMAND
    found = leads_to(alike, last.last_completed_step, by_program=by_program) or last
    kept = last.reason is CheckpointReason.BEFORE_ROLLBACK
    return last if kept and last.actor_state != found.actor_state else found


def _alike_at_the_end(line: Sequence[CheckpointGroup]) -> Sequence[CheckpointGroup]:
    """The groups of the place that the line ends at: nothing has happened since the first of them,
    and no person has said anything."""
    last = line[-1]
    alike: list[CheckpointGroup] = []
    for group in reversed(line):
        if place_of(group) != place_of(last):
            break
        alike.append(group)
        if is_told(group):
            break
    return alike[::-1]


def _line(past: PlanPast, timeline: int) -> Sequence[CheckpointGroup]:
    reach = lineage(timeline, past.forks)
    return [group for group in past.groups if is_live(group.position, reach)]


def _line_to(past: PlanPast, end: Position) -> Sequence[CheckpointGroup]:
    reach = _reach(past, end)
    return [group for group in past.groups if is_live(group.position, reach)]


def _reach(past: PlanPast, end: Position) -> Mapping[int, int | None]:
    return {**lineage(end.timeline, past.forks), end.timeline: end.seq}
