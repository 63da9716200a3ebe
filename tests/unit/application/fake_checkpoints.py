"""Checkpoint groups, in memory."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from datetime import datetime

from fake_tables import Tables
from msgspec.structs import replace

from cleveragents.domain.checkpoint import CheckpointGroup, PrunedCheckpoint
from cleveragents.domain.decision import Position
from cleveragents.domain.errors import DatabaseUnusableError
from cleveragents.domain.ids import (
    CheckpointId,
    DecisionId,
    GroupId,
    PlanId,
    ResourceId,
    id_part,
)
from cleveragents.domain.retention import GroupOutline, StateCounts


class MemoryCheckpoints:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, group: CheckpointGroup) -> None:
        assert group.group_id not in self._tables.groups
        assert group.decision_id is None or group.decision_id in self._tables.decisions
        self._tables.groups[group.group_id] = group

    def get(self, group_id: GroupId) -> CheckpointGroup:
        if group_id not in self._tables.groups:
            raise DatabaseUnusableError("", f"checkpoint group {group_id} is missing")
        return self._tables.groups[group_id]

    def holding(self, checkpoint_id: CheckpointId) -> CheckpointGroup:
        for group in self._tables.groups.values():
            if any(item.checkpoint_id == checkpoint_id for item in group.checkpoints):
                return group
        raise DatabaseUnusableError("", f"checkpoint {checkpoint_id} is missing")

    def of_plan(self, plan_id: PlanId) -> Sequence[CheckpointGroup]:
        found = [g for g in self._tables.groups.values() if g.plan_id == plan_id]
        return sorted(found, key=lambda group: group.position.seq)

    def positions(self, plan_id: PlanId) -> Mapping[GroupId, Position]:
        return {group.group_id: group.position for group in self.of_plan(plan_id)}

    def of_decision(self, plan_id: PlanId, decision_id: DecisionId) -> Sequence[CheckpointGroup]:
        return [g for g in self.of_plan(plan_id) if g.decision_id == decision_id]

    def called(self, plan_id: PlanId, name: str) -> Sequence[CheckpointGroup]:
        part = id_part(name)
        return [
            group
            for group in self.of_plan(plan_id)
            if group.label == name
            or (part and any(n.startswith(part) or n.endswith(part) for n in group.names()))
        ]

    def has_own_label(self, plan_id: PlanId, label: str) -> bool:
        found = (group for group in self.of_plan(plan_id) if group.labelled_by_hand)
        return any(group.label == label for group in found)

    def owner_of(self, name: str) -> PlanId | None:
        owners = (g.plan_id for g in self._tables.groups.values() if name in g.names())
        return next(owners, None)

    def mark_superseded(self, plan_id: PlanId, superseded: Collection[GroupId]) -> None:
        for group in self.of_plan(plan_id):
            gone = group.group_id in superseded
            self._tables.groups[group.group_id] = replace(group, superseded=gone)

    def delete(self, plan_id: PlanId, removed: Mapping[GroupId, str], now: datetime) -> None:
        for group_id, reason in removed.items():
            group = self._tables.groups.pop(group_id, None)
            if group is not None:
                assert group.plan_id == plan_id
                gone = PrunedCheckpoint(group_id=group_id, reason=reason, pruned_at=now)
                self._tables.pruned[group_id] = (group, gone)

    def pruned(self, plan_id: PlanId, name: str) -> PrunedCheckpoint | None:
        for group, gone in self._tables.pruned.values():
            if group.plan_id == plan_id and name in {*group.names(), group.label}:
                return gone
        return None

    def count(self, plan_id: PlanId) -> int:
        return len(self.of_plan(plan_id))

    def sizes(self) -> Mapping[PlanId, int]:
        return {}

    def snapshots(self, plan_id: PlanId) -> Mapping[ResourceId, Set[str]]:
        needed: dict[ResourceId, set[str]] = {}
        for group in self.of_plan(plan_id):
            for state in group.resource_states:
                needed.setdefault(state.resource_id, set()).update((state.snapshot, state.boundary))
        return needed

    def state_counts(self, plan_id: PlanId) -> StateCounts:
        found = Counter(group.state_hash for group in self.of_plan(plan_id))
        return StateCounts(states=len(found), alike=max(found.values(), default=0))

    def outlines(
        self,
        plan_id: PlanId,
        *,
        counts_only: bool = False,
    ) -> Sequence[GroupOutline]:
        return [
            GroupOutline(
                group_id=group.group_id,
                label=group.label,
                state_hash=group.state_hash,
                labelled_by_hand=group.labelled_by_hand,
                created_at=group.created_at,
                size_bytes=0 if counts_only else group.size_bytes,
            )
            for group in self.of_plan(plan_id)
        ]
