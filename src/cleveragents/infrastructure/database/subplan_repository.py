"""Child plans as rows: each under its parent, and what a plan is told about its own."""

import sqlite3
from collections.abc import Mapping, Sequence

from cleveragents.domain.errors import PlanNotFoundError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.places import plan_name
from cleveragents.domain.subplan import ChildOf, ChildPlan, MergeOutcome
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import Row, Table

_SUBPLANS = Table("subplans", "plan_id", ChildPlan, {"position_in_step": "index"})


class SqlSubplans(FencedRows):
    def add(self, child: ChildPlan) -> None:
        _SUBPLANS.insert(self._fence.writing(child.parent_id), child)

    def save(self, child: ChildPlan) -> None:
        if _SUBPLANS.update(self._fence.writing(child.parent_id), child) != 1:
            raise PlanNotFoundError(child.plan_id)

    def get(self, plan_id: PlanId) -> ChildPlan | None:
        found = self._where("plan_id = ?", plan_id)
        return found[0] if found else None

    def of_parent(self, parent_id: PlanId) -> Sequence[ChildPlan]:
        return self._where("parent_id = ?", parent_id)

    def below(self, root_id: PlanId) -> Sequence[ChildPlan]:
        return self._where("root_id = ?", root_id)

    def _where(self, condition: str, value: str) -> Sequence[ChildPlan]:
        rest = f"WHERE {condition} ORDER BY seq, plan_id"
        return _SUBPLANS.select(self._connection, rest, value)


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
        " p.action_name, p.number, p.state IN ('applied', 'cancelled') AS over FROM subplans AS s"
        " JOIN plans AS p ON p.plan_id = s.root_id WHERE ? IS NULL OR root_id = ?",
        (root_id, root_id),
    )
    by_id = {row["plan_id"]: row for row in rows}
    return {PlanId(plan_id): _link(row, by_id) for plan_id, row in by_id.items()}


def _link(row: Row, by_id: Mapping[str, Row]) -> ChildOf:
    invalidated = bool(row["invalidated"])
    above, names = by_id.get(row["parent_id"]), list[str]()
    while above is not None:
        gone = bool(above["invalidated"]) or above["outcome"] == MergeOutcome.DISCARDED
        invalidated = invalidated or gone
        names.append(above["name"])
        above = by_id.get(above["parent_id"])
    root = plan_name(row["action_name"], row["number"])
    return ChildOf(
        parent_id=PlanId(row["parent_id"]),
        root_id=PlanId(row["root_id"]),
        name=row["name"],
        outcome=MergeOutcome(row["outcome"]),
        invalidated=invalidated,
        over=bool(row["over"]),
        above="/".join([root, *reversed(names)]),
    )
