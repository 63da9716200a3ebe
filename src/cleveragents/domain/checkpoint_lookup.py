"""How a person names a checkpoint: by id, by group, by a prefix of either, or by label."""

from collections.abc import Callable, Sequence

from cleveragents.domain.checkpoint import CheckpointGroup, PrunedCheckpoint
from cleveragents.domain.errors import (
    CheckpointAmbiguousError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
)
from cleveragents.domain.ids import PlanId

SHORTEST_PREFIX = 4


def find_group(
    plan_id: PlanId,
    wanted: str,
    groups: Sequence[CheckpointGroup],
    *,
    owner_of: Callable[[str], PlanId | None],
    pruned: Callable[[PlanId, str], PrunedCheckpoint | None],
) -> CheckpointGroup:
    """`groups` are those whose label or id this could be, or begin.

    A full id wins over a label, a label over a prefix; raises rather than guesses.
    """
    name = wanted.strip()
    exact = [group for group in groups if name.upper() in group.names()]
    labelled = [group for group in groups if group.label == name]
    prefixed = [group for group in groups if _has_prefix(group, name.upper())]
    for matches in (exact, _most_meant(labelled), prefixed):
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise CheckpointAmbiguousError(plan_id, name, [group.group_id for group in matches])
    owner = owner_of(name.upper())
    if owner is not None and owner != plan_id:
        raise CheckpointMismatchError(name, owner, plan_id)
    gone = pruned(plan_id, name)
    if gone is not None:
        when = gone.pruned_at.isoformat(sep=" ", timespec="seconds")
        raise CheckpointNotFoundError(plan_id, name, f"it was pruned at {when}: {gone.reason}")
    raise CheckpointNotFoundError(plan_id, name)


def _most_meant(labelled: Sequence[CheckpointGroup]) -> Sequence[CheckpointGroup]:
    """A person's own label before a made one, and what still counts before what does not."""
    by_hand = [group for group in labelled if group.labelled_by_hand] or labelled
    return [group for group in by_hand if not group.superseded] or by_hand


def _has_prefix(group: CheckpointGroup, prefix: str) -> bool:
    return len(prefix) >= SHORTEST_PREFIX and any(n.startswith(prefix) for n in group.names())
