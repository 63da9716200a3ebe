"""Checkpoint groups, their checkpoints and their resource states as rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cleveragents.domain.checkpoint import (
    Checkpoint,
    CheckpointGroup,
    PrunedCheckpoint,
    ResourceState,
)
from cleveragents.domain.decision import Position
from cleveragents.domain.errors import DatabaseUnusableError
from cleveragents.domain.ids import (
    ULID_LETTERS,
    CheckpointId,
    DecisionId,
    GroupId,
    PlanId,
    ResourceId,
    id_part,
)
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import Row, Table, set_flag, storable, to_text

if TYPE_CHECKING:
    from cleveragents.domain.retention import GroupOutline, StateCounts

_GROUPS = Table("checkpoint_groups", "group_id", CheckpointGroup)
_CHECKPOINTS = Table("checkpoints", "checkpoint_id", Checkpoint)
_STATES = Table("checkpoint_resource_states", "resource_id", ResourceState)
_PRUNED = Table("pruned_checkpoints", "checkpoint_id", PrunedCheckpoint)
PLAN_RESOURCE_NAME = "plan"
# By way of the groups: the checkpoints of a plan lie among those of all others.
_SELECT_CHECKPOINTS = """
SELECT c.*, COALESCE(r.name, ?) AS resource FROM checkpoint_groups g
JOIN checkpoints c ON c.group_id = g.group_id
LEFT JOIN plan_resources r ON r.resource_id = c.resource_id
WHERE g.{where} ORDER BY c.rowid
"""
_CALLED = """
SELECT group_id FROM checkpoint_groups WHERE plan_id = :plan_id
AND (label = :label OR group_id >= :id AND group_id < :end)
UNION SELECT g.group_id FROM checkpoints c JOIN checkpoint_groups g ON g.group_id = c.group_id
WHERE c.checkpoint_id >= :id AND c.checkpoint_id < :end AND g.plan_id = :plan_id
"""
_ENDING = """
SELECT DISTINCT g.group_id FROM checkpoint_groups g JOIN checkpoints c ON c.group_id = g.group_id
WHERE g.plan_id = ? AND substr(c.checkpoint_id, ?) = ?
"""
_NEVER = datetime.max.replace(tzinfo=UTC)
_STATE_COUNTS = """
SELECT COUNT(*), COALESCE(MAX(groups), 0) FROM
(SELECT COUNT(*) AS groups FROM checkpoint_groups WHERE plan_id = ? GROUP BY state_hash)
"""
_SIZE_OF_GROUP = "(SELECT SUM(c.size_bytes) FROM checkpoints c WHERE c.group_id = g.group_id)"


class SqlCheckpoints(FencedRows):
    def add(self, group: CheckpointGroup) -> None:
        writing = self._fence.writing(group.plan_id)
        _GROUPS.insert(writing, group)
        for checkpoint in group.checkpoints:
            _CHECKPOINTS.insert(writing, checkpoint)
        for state in group.resource_states:
            _STATES.insert(writing, state, group_id=group.group_id)

    def get(self, group_id: GroupId) -> CheckpointGroup:
        groups = self._load("group_id = ?", group_id)
        if not groups:
            raise DatabaseUnusableError("", f"checkpoint group {group_id} is missing")
        return groups[0]

    def holding(self, checkpoint_id: CheckpointId) -> CheckpointGroup:
        row = self._connection.execute(
            "SELECT group_id FROM checkpoints WHERE checkpoint_id = ?", (checkpoint_id,)
        ).fetchone()
        if row is None:
            raise DatabaseUnusableError("", f"checkpoint {checkpoint_id} is missing")
        return self.get(GroupId(row[0]))

    def of_plan(self, plan_id: PlanId) -> Sequence[CheckpointGroup]:
        return self._load("plan_id = ?", plan_id)

    def positions(self, plan_id: PlanId) -> Mapping[GroupId, Position]:
        rows = self._connection.execute(
            "SELECT group_id, timeline, seq FROM checkpoint_groups WHERE plan_id = ?", (plan_id,)
        )
        return {GroupId(row[0]): Position(timeline=row[1], seq=row[2]) for row in rows}

    def of_decision(self, plan_id: PlanId, decision_id: DecisionId) -> Sequence[CheckpointGroup]:
        rows = self._connection.execute(
            "SELECT group_id FROM checkpoint_groups WHERE plan_id = ? AND decision_id = ?"
            " ORDER BY seq",
            (plan_id, decision_id),
        )
        return [self.get(GroupId(row[0])) for row in rows.fetchall()]

    def called(self, plan_id: PlanId, name: str) -> Sequence[CheckpointGroup]:
        part = id_part(name)
        start, end = ("", "") if part is None else (part, f"{part}~")
        keys = {"plan_id": plan_id, "label": storable(name), "id": start, "end": end}
        found = {row[0] for row in self._connection.execute(_CALLED, keys)}
        if part is not None and len(part) < ULID_LETTERS:
            keys = (plan_id, -len(part), part)
            found.update(row[0] for row in self._connection.execute(_ENDING, keys))
        groups = [self.get(GroupId(group_id)) for group_id in found]
        return sorted(groups, key=lambda group: group.position.seq)

    def has_own_label(self, plan_id: PlanId, label: str) -> bool:
        row = self._connection.execute(
            "SELECT 1 FROM checkpoint_groups WHERE plan_id = ? AND labelled_by_hand AND label = ?",
            (plan_id, label),
        ).fetchone()
        return row is not None

    def owner_of(self, name: str) -> PlanId | None:
        row = self._connection.execute(
            "SELECT plan_id FROM checkpoint_groups WHERE group_id = ?"
            " UNION ALL SELECT plan_id FROM checkpoints WHERE checkpoint_id = ?",
            (storable(name), storable(name)),
        ).fetchone()
        return None if row is None else PlanId(row[0])

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[GroupId]) -> None:
        writing, wanted = self._fence.writing(plan_id), set(superseded)
        set_flag(writing, "checkpoint_groups", "group_id", "superseded", plan_id, wanted)

    def delete(self, plan_id: PlanId, removed: Mapping[GroupId, str], now: datetime) -> None:
        writing = self._fence.writing(plan_id)
        # What is left of them tells people later that they are gone, and not mistyped.
        writing.executemany(
            "INSERT INTO pruned_checkpoints (checkpoint_id, group_id, plan_id, label, reason,"
            " pruned_at) SELECT c.checkpoint_id, g.group_id, g.plan_id, g.label, ?, ? FROM"
            " checkpoints c JOIN checkpoint_groups g ON g.group_id = c.group_id"
            " WHERE g.group_id = ? AND g.plan_id = ?",
            [(reason, to_text(now), key, plan_id) for key, reason in removed.items()],
        )
        writing.executemany(
            "DELETE FROM checkpoint_groups WHERE group_id = ? AND plan_id = ?",
            [(key, plan_id) for key in removed],
        )

    def pruned(self, plan_id: PlanId, name: str) -> PrunedCheckpoint | None:
        names = (storable(name.upper()), storable(name.upper()), storable(name))
        rest = (
            "WHERE plan_id = ? AND (checkpoint_id = ? OR group_id = ? OR label = ?)"
            " ORDER BY rowid DESC LIMIT 1"
        )
        return next(iter(_PRUNED.select(self._connection, rest, plan_id, *names)), None)

    def count(self, plan_id: PlanId) -> int:
        row = self._connection.execute(
            "SELECT COUNT(*) FROM checkpoint_groups WHERE plan_id = ?", (plan_id,)
        ).fetchone()
        return int(row[0])

    def sizes(self) -> Mapping[PlanId, int]:
        rows = self._connection.execute(
            "SELECT plan_id, SUM(size_bytes) FROM checkpoints GROUP BY plan_id"
        )
        return {PlanId(plan_id): int(size) for plan_id, size in rows}

    def snapshots(self, plan_id: PlanId) -> Mapping[ResourceId, Set[str]]:
        rows = self._connection.execute(
            "SELECT s.resource_id, s.snapshot, s.boundary FROM checkpoint_groups g"
            " JOIN checkpoint_resource_states s ON s.group_id = g.group_id WHERE g.plan_id = ?",
            (plan_id,),
        )
        needed: dict[str, set[str]] = {}
        for resource, *refs in rows:
            needed.setdefault(resource, set()).update(refs)
        return {ResourceId(resource): refs for resource, refs in needed.items()}

    def state_counts(self, plan_id: PlanId) -> "StateCounts":
        from cleveragents.domain.retention import StateCounts  # noqa: PLC0415 - who prunes

        row = self._connection.execute(_STATE_COUNTS, (plan_id,)).fetchone()
        return StateCounts(states=row[0], alike=row[1])

    def outlines(self, plan_id: PlanId, *, counts_only: bool = False) -> "Sequence[GroupOutline]":
        from cleveragents.domain.retention import GroupOutline  # noqa: PLC0415 - who prunes

        size = "0" if counts_only else _SIZE_OF_GROUP
        rows = self._connection.execute(
            "SELECT g.group_id, g.label, g.state_hash, g.labelled_by_hand, g.created_at,"
            f" {size} AS size_bytes FROM checkpoint_groups g WHERE g.plan_id = ? ORDER BY g.seq",
            (plan_id,),
        )
        return [
            GroupOutline(
                group_id=GroupId(row["group_id"]),
                label=row["label"],
                state_hash=row["state_hash"],
                labelled_by_hand=bool(row["labelled_by_hand"]),
                created_at=_NEVER if counts_only else datetime.fromisoformat(row["created_at"]),
                size_bytes=row["size_bytes"],
            )
            for row in rows
        ]

    def _load(self, where: str, key: str) -> list[CheckpointGroup]:
        groups = self._connection.execute(
            f"SELECT * FROM checkpoint_groups WHERE {where} ORDER BY seq", (key,)
        ).fetchall()
        checkpoints = _grouped(
            self._connection.execute(
                _SELECT_CHECKPOINTS.format(where=where), (PLAN_RESOURCE_NAME, key)
            )
        )
        states = _grouped(
            self._connection.execute(
                "SELECT s.* FROM checkpoint_resource_states s JOIN checkpoint_groups g"
                f" ON g.group_id = s.group_id WHERE g.{where} ORDER BY s.resource_id",
                (key,),
            )
        )
        return [
            _group(row, checkpoints.get(row["group_id"], []), states.get(row["group_id"], []))
            for row in groups
        ]


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    by_group: dict[str, list[Row]] = {}
    for row in rows:
        by_group.setdefault(row["group_id"], []).append(row)
    return by_group


def _group(row: Row, checkpoints: list[Row], states: list[Row]) -> CheckpointGroup:
    return _GROUPS.read(
        row,
        checkpoints=tuple(_CHECKPOINTS.read(item) for item in checkpoints),
        resource_states=tuple(_STATES.read(item) for item in states),
    )
