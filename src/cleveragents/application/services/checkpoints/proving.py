"""Owns which checkpoint groups could not be restored, by what the snapshots of each prove to be."""

from collections.abc import Mapping, Sequence

from cleveragents.application.ports.runtime import Expected, SnapshotStore
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.ids import GroupId
from cleveragents.domain.resource import PlanResource


def damages(
    snapshots: SnapshotStore,
    resources: Sequence[PlanResource],
    groups: Sequence[CheckpointGroup],
) -> Mapping[GroupId, str]:
    """The damaged groups in their order, each with the reason of its first damaged resource."""
    found: dict[GroupId, str] = {}
    for resource in resources:
        left = [group for group in groups if group.group_id not in found]
        found |= _damages_of(snapshots, resource, left)
    return {group.group_id: found[group.group_id] for group in groups if group.group_id in found}


def _damages_of(
    snapshots: SnapshotStore, resource: PlanResource, groups: Sequence[CheckpointGroup]
) -> Mapping[GroupId, str]:
    states = {group.group_id: group.state_of(resource.resource_id) for group in groups}
    needed = {
        group_id: Expected(ref=state.snapshot, state_hash=state.state_hash)
        for group_id, state in states.items()
        if state is not None
    }
    # Most groups share their snapshots: each is proven once, whoever needs it.
    damaged = snapshots.damages(resource, dict.fromkeys(needed.values()).keys())
    return {key: damaged[snapshot] for key, snapshot in needed.items() if snapshot in damaged}
