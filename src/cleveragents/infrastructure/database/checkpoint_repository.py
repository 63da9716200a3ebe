"""Checkpoint groups, their checkpoints and their resource states as rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime

from cleveragents.domain.checkpoint import (
    Checkpoint,
    CheckpointGroup,
    CheckpointReason,
    PrunedCheckpoint,
    ResourceState,
)
from cleveragents.domain.checkpoint_lookup import SHORTEST_PREFIX
from cleveragents.domain.decision import Position
from cleveragents.domain.errors import DatabaseUnusableError
from cleveragents.domain.ids import CheckpointId, DecisionId, GroupId, PlanId, ResourceId
from cleveragents.domain.retention import GroupOutline, StateCounts
from cleveragents.infrastructure.database.fence import FencedRows
from cleveragents.infrastructure.database.rows import (
    Row,
    from_json,
    insert,
    row_of,
    set_flag,
    storable,
    sure_time,
    to_json,
    to_text,
)

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
_NEVER = datetime.max.replace(tzinfo=UTC)
_STATE_COUNTS = """
SELECT COUNT(*), COALESCE(MAX(groups), 0) FROM
(SELECT COUNT(*) AS groups FROM checkpoint_groups WHERE plan_id = ? GROUP BY state_hash)
"""
_SIZE_OF_GROUP = "(SELECT SUM(c.size_bytes) FROM checkpoints c WHERE c.group_id = g.group_id)"


class SqlCheckpoints(FencedRows):
    def add(self, group: CheckpointGroup) -> None:
        writing = self._fence.writing(group.plan_id)
        insert(writing, "checkpoint_groups", _group_values(group))
        for checkpoint in group.checkpoints:
            insert(writing, "checkpoints", _checkpoint_values(checkpoint))
        for state in group.resource_states:
            insert(
                writing,
                "checkpoint_resource_states",
                {
                    "group_id": group.group_id,
                    "resource_id": state.resource_id,
                    "snapshot": state.snapshot,
                    "state_hash": state.state_hash,
                    "boundary": state.boundary,
                },
            )

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

    def of_decision(self, plan_id: PlanId, decision_id: DecisionId) -> Sequence[CheckpointGroup]:
        rows = self._connection.execute(
            "SELECT group_id FROM checkpoint_groups WHERE plan_id = ? AND decision_id = ?"
            " ORDER BY seq",
            (plan_id, decision_id),
        )
        return [self.get(GroupId(row[0])) for row in rows.fetchall()]

    def called(self, plan_id: PlanId, name: str) -> Sequence[CheckpointGroup]:
        label, start = storable(name), storable(name.upper())
        end = f"{start}~" if len(name) >= SHORTEST_PREFIX else start
        keys = {"plan_id": plan_id, "label": label, "id": start, "end": end}
        found = [self.get(GroupId(row[0])) for row in self._connection.execute(_CALLED, keys)]
        return sorted(found, key=lambda group: group.position.seq)

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
        row = self._connection.execute(
            "SELECT group_id, reason, pruned_at FROM pruned_checkpoints WHERE plan_id = ?"
            " AND (checkpoint_id = ? OR group_id = ? OR label = ?) ORDER BY rowid DESC",
            (plan_id, storable(name.upper()), storable(name.upper()), storable(name)),
        ).fetchone()
        if row is None:
            return None
        return PrunedCheckpoint(
            group_id=GroupId(row[0]), reason=row[1], pruned_at=sure_time(row[2])
        )

    def count(self, plan_id: PlanId) -> int:
        row = self._connection.execute(
            "SELECT COUNT(*) FROM checkpoint_groups WHERE plan_id = ?", (plan_id,)
        ).fetchone()
        return int(row[0])

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

    def state_counts(self, plan_id: PlanId) -> StateCounts:
        row = self._connection.execute(_STATE_COUNTS, (plan_id,)).fetchone()
        return StateCounts(states=row[0], alike=row[1])

    def outlines(self, plan_id: PlanId, *, counts_only: bool = False) -> Sequence[GroupOutline]:
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
                created_at=_NEVER if counts_only else sure_time(row["created_at"]),
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


def _group_values(group: CheckpointGroup) -> dict[str, object]:
    return {
        "group_id": group.group_id,
        "plan_id": group.plan_id,
        "timeline": group.position.timeline,
        "seq": group.position.seq,
        "decision_id": group.decision_id,
        "step_index": group.step_index,
        "reason": group.reason,
        "source": group.source,
        "phase": group.phase,
        "label": group.label,
        "labelled_by_hand": group.labelled_by_hand,
        "state_hash": group.state_hash,
        "created_at": to_text(group.created_at),
        "last_completed_step": group.last_completed_step,
        "attempt": group.attempt,
        "actor_state_json": to_json(group.actor_state),
        "superseded": group.superseded,
    }


def _checkpoint_values(checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "checkpoint_id": checkpoint.checkpoint_id,
        "group_id": checkpoint.group_id,
        "plan_id": checkpoint.plan_id,
        "decision_id": checkpoint.decision_id,
        "resource_id": checkpoint.resource_id,
        "checkpoint_type": checkpoint.checkpoint_type,
        "sandbox_ref": checkpoint.sandbox_ref,
        "filesystem_path": checkpoint.filesystem_path,
        "size_bytes": checkpoint.size_bytes,
        "created_at": to_text(checkpoint.created_at),
        "step_index": checkpoint.step_index,
        "state_hash": checkpoint.state_hash,
        "label": checkpoint.label,
        "metadata_json": to_json(checkpoint.metadata),
    }


@row_of("checkpoint_groups", "group_id")
def _group(row: Row, checkpoints: list[Row], states: list[Row]) -> CheckpointGroup:
    return CheckpointGroup(
        group_id=GroupId(row["group_id"]),
        plan_id=PlanId(row["plan_id"]),
        position=Position(timeline=row["timeline"], seq=row["seq"]),
        decision_id=_maybe_decision(row["decision_id"]),
        step_index=row["step_index"],
        reason=CheckpointReason(row["reason"]),
        source=row["source"],
        phase=row["phase"],
        label=row["label"],
        labelled_by_hand=bool(row["labelled_by_hand"]),
        state_hash=row["state_hash"],
        created_at=sure_time(row["created_at"]),
        last_completed_step=row["last_completed_step"],
        attempt=row["attempt"],
        actor_state=from_json(row["actor_state_json"]),
        superseded=bool(row["superseded"]),
        checkpoints=tuple(_checkpoint(item) for item in checkpoints),
        resource_states=tuple(
            ResourceState(
                resource_id=ResourceId(item["resource_id"]),
                snapshot=item["snapshot"],
                state_hash=item["state_hash"],
                boundary=item["boundary"],
            )
            for item in states
        ),
    )


@row_of("checkpoints", "checkpoint_id")
def _checkpoint(row: Row) -> Checkpoint:
    resource_id = row["resource_id"]
    return Checkpoint(
        checkpoint_id=CheckpointId(row["checkpoint_id"]),
        group_id=GroupId(row["group_id"]),
        plan_id=PlanId(row["plan_id"]),
        decision_id=_maybe_decision(row["decision_id"]),
        resource_id=None if resource_id is None else ResourceId(resource_id),
        resource=row["resource"],
        checkpoint_type=row["checkpoint_type"],
        sandbox_ref=row["sandbox_ref"],
        filesystem_path=row["filesystem_path"],
        size_bytes=row["size_bytes"],
        created_at=sure_time(row["created_at"]),
        step_index=row["step_index"],
        state_hash=row["state_hash"],
        label=row["label"],
        metadata=from_json(row["metadata_json"]),
    )


def _maybe_decision(text: str | None) -> DecisionId | None:
    return None if text is None else DecisionId(text)
