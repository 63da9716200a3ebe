"""Child plans as rows: each under its parent, and what a plan is told about its own."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from cleveragents.domain.conflicts import Hunk, Loss
from cleveragents.domain.decision import Position
from cleveragents.domain.errors import PlanNotFoundError
from cleveragents.domain.ids import DecisionId, PlanId
from cleveragents.domain.subplan import (
    ChildOf,
    ChildPlan,
    Conflict,
    ConflictKind,
    MergeOutcome,
)
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import (
    Row,
    from_json,
    insert,
    row_of,
    to_json,
    update,
)


class SqlSubplans(FencedRows):
    def add(self, child: ChildPlan) -> None:
        insert(self._fence.writing(child.parent_id), "subplans", _values(child))

    def save(self, child: ChildPlan) -> None:
        writing = self._fence.writing(child.parent_id)
        if update(writing, "subplans", "plan_id", _values(child)) != 1:
            raise PlanNotFoundError(child.plan_id)

    def get(self, plan_id: PlanId) -> ChildPlan | None:
        found = self._where("plan_id = ?", plan_id)
        return found[0] if found else None

    def of_parent(self, parent_id: PlanId) -> Sequence[ChildPlan]:
        return self._where("parent_id = ?", parent_id)

    def below(self, root_id: PlanId) -> Sequence[ChildPlan]:
        return self._where("root_id = ?", root_id)

    def _where(self, condition: str, value: str) -> Sequence[ChildPlan]:
        rows = self._connection.execute(
            f"SELECT * FROM subplans WHERE {condition} ORDER BY seq, plan_id", (value,)
        )
        return [_child(row) for row in rows]


def child_of(connection: sqlite3.Connection, plan_id: PlanId) -> ChildOf | None:
    """None for a plan at the top."""
    row = connection.execute(
        "SELECT root_id FROM subplans WHERE plan_id = ?", (plan_id,)
    ).fetchone()
    return child_links(connection, row["root_id"]).get(plan_id) if row else None


def child_links(
    connection: sqlite3.Connection, root_id: str | None = None
) -> Mapping[PlanId, ChildOf]:
    """For every child, or those below one plan, how it stands to its parent."""
    rows = connection.execute(
        "SELECT s.plan_id, parent_id, root_id, name, outcome, invalidated,"
        " p.state IN ('applied', 'cancelled') AS over FROM subplans AS s"
        " JOIN plans AS p ON p.plan_id = s.root_id WHERE ? IS NULL OR root_id = ?",
        (root_id, root_id),
    )
    by_id = {row["plan_id"]: row for row in rows}
    return {PlanId(plan_id): _link(row, by_id) for plan_id, row in by_id.items()}


def _link(row: Row, by_id: Mapping[str, Row]) -> ChildOf:
    invalidated = bool(row["invalidated"])
    above = by_id.get(row["parent_id"])
    while above is not None and not invalidated:
        invalidated = bool(above["invalidated"]) or above["outcome"] == MergeOutcome.DISCARDED
        above = by_id.get(above["parent_id"])
    return ChildOf(
        parent_id=PlanId(row["parent_id"]),
        root_id=PlanId(row["root_id"]),
        name=row["name"],
        outcome=MergeOutcome(row["outcome"]),
        invalidated=invalidated,
        over=bool(row["over"]),
    )


def _values(child: ChildPlan) -> dict[str, object]:
    return {
        "plan_id": child.plan_id,
        "parent_id": child.parent_id,
        "root_id": child.root_id,
        "decision_id": child.decision_id,
        "name": child.name,
        "position_in_step": child.index,
        "timeline": child.position.timeline,
        "seq": child.position.seq,
        "outcome": child.outcome,
        "invalidated": child.invalidated,
        "retries": child.retries,
        "reason": child.reason,
        "conflicts_json": to_json([_conflict_values(conflict) for conflict in child.conflicts]),
        "merges_json": to_json([(place.timeline, place.seq) for place in child.merges]),
        "losses_json": to_json(
            [
                (loss.resource, loss.path, loss.whose, loss.lines, loss.count)
                for loss in child.losses
            ]
        ),
    }


@row_of("subplans", "plan_id")
def _child(row: Row) -> ChildPlan:
    return ChildPlan(
        plan_id=PlanId(row["plan_id"]),
        parent_id=PlanId(row["parent_id"]),
        root_id=PlanId(row["root_id"]),
        decision_id=DecisionId(row["decision_id"]),
        name=row["name"],
        index=row["position_in_step"],
        position=Position(timeline=row["timeline"], seq=row["seq"]),
        outcome=MergeOutcome(row["outcome"]),
        invalidated=bool(row["invalidated"]),
        retries=row["retries"],
        reason=row["reason"],
        conflicts=tuple(_conflict(item) for item in from_json(row["conflicts_json"])),
        losses=tuple(
            Loss(resource=resource, path=path, whose=whose, lines=tuple(lines), count=count)
            for resource, path, whose, lines, count in from_json(row["losses_json"])
        ),
        merges=tuple(
            Position(timeline=timeline, seq=seq) for timeline, seq in from_json(row["merges_json"])
        ),
    )


def _conflict_values(conflict: Conflict) -> dict[str, object]:
    return {
        "resource": conflict.resource,
        "path": conflict.path,
        "kind": conflict.kind,
        "ours": conflict.ours,
        "theirs": conflict.theirs,
        "ours_by": conflict.ours_by,
        "hunks": [(hunk.line, hunk.base, hunk.ours, hunk.theirs) for hunk in conflict.hunks],
        "more": conflict.more,
        "editable": conflict.editable,
        "key": conflict.key,
    }


def _conflict(item: Mapping[str, Any]) -> Conflict:
    hunks = tuple(
        Hunk(line=line, base=tuple(base), ours=tuple(ours), theirs=tuple(theirs))
        for line, base, ours, theirs in item["hunks"]
    )
    return Conflict(
        resource=item["resource"],
        path=item["path"],
        kind=ConflictKind(item["kind"]),
        ours=item["ours"],
        theirs=item["theirs"],
        ours_by=item["ours_by"],
        hunks=hunks,
        more=item["more"],
        editable=item["editable"],
        key=item["key"],
    )
