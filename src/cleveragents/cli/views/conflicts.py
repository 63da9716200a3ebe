"""How the two sides of a conflict look, and what a merge has left out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cleveragents.cli.render.blocks import Block, Code
from cleveragents.cli.views.words import picked
from cleveragents.domain.ids import PlanId
from cleveragents.domain.subplan import ChildPlan, Conflict, MergeOutcome

if TYPE_CHECKING:
    from cleveragents.application.services.subplans.queries import ChildStatus


def conflict_data(conflict: Conflict) -> Mapping[str, Any]:
    return {
        **picked(conflict, "resource path kind ours"),
        "ours_by": conflict.ours_by or None,
        "theirs": conflict.theirs,
        "hunks": [picked(hunk, "line base ours theirs") for hunk in conflict.hunks],
        "more_hunks": conflict.more,
        "choices": ["ours", "theirs", *(["edit"] if conflict.editable else [])],
    }


def conflict_title(child: ChildPlan, conflict: Conflict) -> str:
    return f"{conflict} of child {child.name}"


def conflict_blocks(children: "Sequence[ChildStatus]") -> Sequence[Block]:
    """Both sides of everything that waits for a decision."""
    return [
        Code(f"Conflict: {conflict_title(item.child, conflict)}", _sides(item.child, conflict))
        for item in children
        if item.child.counts and item.child.outcome is MergeOutcome.CONFLICT
        for conflict in item.child.conflicts
    ]


def conflict_steps(plan_id: PlanId, children: "Sequence[ChildStatus]") -> Sequence[str]:
    """What to type next, if something waits for a decision."""
    found = len(conflict_blocks(children))
    if not found:
        return []
    each = f"each file by itself: agents plan resume --theirs --ours-for PATH {plan_id}"
    return [
        f"keep what is merged: agents plan resume --ours {plan_id}",
        f"take the child's: agents plan resume --theirs {plan_id}",
        f"decide line by line: agents plan resume --edit {plan_id}",
        *([each] if found > 1 else []),
    ]


def overwritten(children: "Sequence[ChildStatus]") -> Sequence[str]:
    """What is not in the plan any more, or never came into it, because somebody chose so."""
    return [
        f"merging child {item.child.name} left out {', '.join(map(str, item.child.losses))}"
        for item in children
        if item.child.counts and item.child.outcome is MergeOutcome.MERGED and item.child.losses
    ]


def _sides(child: ChildPlan, conflict: Conflict) -> str:
    ours, theirs = f"ours ({conflict.ours_by or 'the plan'})", f"theirs ({child.name})"
    lines = [f"{ours}: {conflict.ours}", f"{theirs}: {conflict.theirs}"]
    for hunk in conflict.hunks:
        lines += [f"line {hunk.line}", f"  {ours}", *_indented(hunk.ours)]
        lines += [f"  {theirs}", *_indented(hunk.theirs)]
    if conflict.more:
        lines.append(f"… {conflict.more} more places")
    return "\n".join(lines)


def _indented(lines: Sequence[str]) -> Sequence[str]:
    return [f"    {line}" for line in lines] or ["    (nothing)"]
