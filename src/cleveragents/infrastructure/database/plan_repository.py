"""Plans, their resources, and child plans, each under its parent, as rows."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from cleveragents.domain.actor_protocol import PlacedStep, grown
from cleveragents.domain.errors import DatabaseUnusableError, PlanNotFoundError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.places import PlacedPlan, folder_of, plan_name
from cleveragents.domain.plan import Plan
from cleveragents.domain.resource import PlanResource
from cleveragents.domain.resource_kinds import type_named
from cleveragents.domain.subplan import ChildOf, ChildPlan, MergeOutcome
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import DamagedRowError, Row, Table, storable

_SUBPLANS = Table("subplans", "plan_id", ChildPlan, {"position_in_step": "index"})
_PLANS = Table("plans", "plan_id", Plan, {"last_checkpoint_id": "head"})
_ACTIONS = Table("plan_actions", "plan_id", Plan)
_STEPS = Table("decided_steps", "plan_id", PlacedStep, {"step_index": "index"})
_RESOURCES = Table("plan_resources", "resource_id", PlanResource)
# A correction counts as long as its own decision does, and so does a step that was decided.
_PLACED_STEPS = """
SELECT c.plan_id, c.step_index, c.replacement_json AS step_json, 0 AS judges, d.seq
FROM corrections c JOIN decisions d ON d.decision_id = c.intervention_id
WHERE c.replacement_json IS NOT NULL AND d.superseded = 0 {corrected}
UNION ALL
SELECT d.plan_id, d.step_index, s.step_json, d.type = 'validation_response', d.seq
FROM decided_steps s JOIN decisions d ON d.decision_id = s.decision_id
WHERE d.superseded = 0 {decided}
ORDER BY 5
"""
# A child plan's place is that of its parent, which is the one that a person means.
_PLACES = """
SELECT p.plan_id, p.action_name, p.number, r.resource_id, r.type, r.location FROM plans p
LEFT JOIN plan_resources r ON r.resource_id =
    (SELECT min(first.resource_id) FROM plan_resources first WHERE first.plan_id = p.plan_id)
WHERE NOT EXISTS (SELECT 1 FROM subplans s WHERE s.plan_id = p.plan_id) {and_}
ORDER BY p.ordinal DESC
"""
# Numbers are counted beside the plans, so that those of plans that are gone stay theirs.
_COUNT = """
INSERT INTO plan_numbers (action_name, last) VALUES (?, 1)
ON CONFLICT (action_name) DO UPDATE SET last = last + 1 RETURNING last
"""
# Apart from the plan's own row, which each step changes: SQLite goes over all of a row for that.
_WITH_ACTION = "SELECT p.*, a.action_json FROM plans p LEFT JOIN plan_actions a USING (plan_id)"
_LAST = "SELECT coalesce(max(ordinal), 0) FROM plans"
_OF_ALL = _PLACED_STEPS.format(corrected="", decided="")
_OF_ONE = _PLACED_STEPS.format(corrected="AND c.plan_id = ?", decided="AND s.plan_id = ?")


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


class SqlPlans(FencedRows):
    """A plan's action has the steps that its actor decided, and those that corrections put in the
    place of others."""

    def add(self, plan: Plan) -> None:
        # Ids are made from the time, which may go back; only one transaction adds at a time.
        (last,) = self._connection.execute(_LAST).fetchone()
        once = {"ordinal": last + 1, "action_name": storable(plan.action.name), "lease_epoch": 0}
        making = self._fence.making(plan.plan_id)
        _PLANS.insert(making, plan, **once)
        _ACTIONS.insert(making, plan)

    def save(self, plan: Plan) -> None:
        if _PLANS.update(self._fence.writing(plan.plan_id), plan) != 1:
            raise PlanNotFoundError(plan.plan_id)

    def give_action(self, plan: Plan) -> None:
        """Another program works on it now; it is the plan that was made last."""
        connection = self._fence.writing(plan.plan_id)
        if _ACTIONS.update(connection, plan) != 1:
            raise PlanNotFoundError(plan.plan_id)
        (last,) = self._connection.execute(_LAST).fetchone()
        connection.execute(
            "UPDATE plans SET ordinal = ? WHERE plan_id = ?", (last + 1, plan.plan_id)
        )

    def refuse_overtaken(self, plan_id: PlanId) -> None:
        self._fence.refuse_overtaken(plan_id)

    def get(self, plan_id: PlanId) -> Plan:
        row = self._connection.execute(f"{_WITH_ACTION} WHERE p.plan_id = ?", (plan_id,)).fetchone()
        if row is None:
            raise PlanNotFoundError(plan_id)
        steps = self._connection.execute(_OF_ONE, (plan_id, plan_id))
        return _grown(
            replace(_PLANS.read(row), child_of=child_of(self._connection, plan_id)), steps
        )

    def next_number(self, plan: Plan) -> int:
        name = (storable(plan.action.name),)
        (number,) = self._fence.making(plan.plan_id).execute(_COUNT, name).fetchone()
        return int(number)

    def starting_with(self, prefix: str) -> Sequence[PlanId]:
        rows = self._connection.execute(
            "SELECT plan_id FROM plans WHERE plan_id >= ? AND plan_id < ? ORDER BY plan_id",
            (prefix, prefix + "~"),
        )
        return [PlanId(row[0]) for row in rows]

    def ending_with(self, ending: str) -> Sequence[PlanId]:
        rows = self._connection.execute(
            "SELECT plan_id FROM plans WHERE substr(plan_id, ?) = ? ORDER BY plan_id",
            (-len(ending), ending),
        )
        return [PlanId(row[0]) for row in rows]

    def list(self) -> Sequence[Plan]:
        rows = self._connection.execute(f"{_WITH_ACTION} ORDER BY p.ordinal DESC").fetchall()
        steps: dict[str, list[Row]] = {}
        for step in self._connection.execute(_OF_ALL):
            steps.setdefault(step["plan_id"], []).append(step)
        plans = [_grown(_PLANS.read(row), steps.get(row["plan_id"], [])) for row in rows]
        children = child_links(self._connection)
        return [replace(plan, child_of=children.get(plan.plan_id)) for plan in plans]

    def places(self) -> Sequence[PlacedPlan]:
        return self._placed("")

    def of_action(self, name: str, number: int | None = None) -> Sequence[PlacedPlan]:
        if number is None:
            return self._placed("AND p.action_name = ?", storable(name))
        return self._placed("AND p.action_name = ? AND p.number = ?", storable(name), number)

    def _placed(self, and_: str, *keys: object) -> Sequence[PlacedPlan]:
        return [
            PlacedPlan(
                plan_id=PlanId(row["plan_id"]),
                action=row["action_name"],
                number=row["number"],
                place=_place(row),
            )
            for row in self._connection.execute(_PLACES.format(and_=and_), keys)
        ]


class SqlResources(FencedRows):
    def add(self, *resources: PlanResource) -> None:
        for resource in resources:
            _RESOURCES.insert(self._fence.writing(resource.plan_id), resource)

    def save(self, *resources: PlanResource) -> None:
        for resource in resources:
            if _RESOURCES.update(self._fence.writing(resource.plan_id), resource) != 1:
                raise DatabaseUnusableError("", f"resource {resource.resource_id} is missing")

    def of_plan(self, plan_id: PlanId) -> Sequence[PlanResource]:
        rest = "WHERE plan_id = ? ORDER BY resource_id"
        return _RESOURCES.select(self._connection, rest, plan_id)


def _place(row: Row) -> str | None:
    """Of the first resource, if the plan has any. Raises DamagedRowError."""
    if row["type"] is None:
        return None
    try:
        return folder_of(type_named(row["type"]), row["location"])
    except ValueError as error:
        name = f"{row['resource_id']} in plan_resources"
        raise DamagedRowError(f"{name} cannot be read: {error}") from error


def _grown(plan: Plan, steps: Iterable[Row]) -> Plan:
    placed = [_STEPS.read(row) for row in steps]
    return replace(plan, action=grown(plan.action, placed)) if placed else plan
